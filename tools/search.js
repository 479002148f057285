// How the search page finds and orders pages. Sphinx alone finds pages that have all words of a query, and headings and
// index entries that contain the whole query. Here each word counts, a rare one more, and most in a heading or an entry.
var Scorer = {objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0}; // As Sphinx has them

const stemmer = new Stemmer();
const wordsOf = text => [...new Set(splitQuery(text.toLowerCase()).map(word => stemmer.stemWord(word)))];

// Module notebooks are for those who change the package, and so are pages that only their headings and entries find.
// Further down are also lists of pages, and benchmarks
const isModule = page => /^nbs\/(?!howto|reference|tutorials)/.test(page);
const isForContributors = page => ["CONTRIBUTING", "RELEASING", "CHANGELOG"].includes(page);
const isList = page => !page.includes("/") && page !== "index";
const demotion = page => isForContributors(page) || page.startsWith("benchmarks/") ? .7 : isList(page) ? 2 : 0;

// All headings and index entries; a title such as "Messages: warnings, verdicts" also by its parts
const phrasesOf = ({alltitles, indexentries, docnames}) => {
  const phrases = [];
  const add = (text, page, anchor, heading) => {
    if (isModule(docnames[page])) return;
    for (const part of new Set([text, ...text.split(/[:,?] /)]))
      phrases.push({words: wordsOf(part), page, anchor, heading});
  };
  for (const [text, places] of Object.entries(alltitles))
    for (const [page, anchor] of places) add(text, page, anchor, text);
  for (const [text, places] of Object.entries(indexentries))
    for (const [page, anchor, isMain] of places) if (isMain) add(text, page, anchor, null);
  return phrases;
};

// The pages of each word, in texts, headings and entries
const pagesOfWords = ({terms, titleterms, docnames}, phrases) => {
  const pages = new Map();
  const add = (word, page) => pages.set(word, (pages.get(word) ?? new Set()).add(page));
  for (const word of Object.keys(terms))
    for (const page of [terms[word]].flat()) if (!isForContributors(docnames[page])) add(word, page);
  for (const word of Object.keys(titleterms)) for (const page of [titleterms[word]].flat()) add(word, page);
  for (const {words, page} of phrases) for (const word of words) add(word, page);
  return pages;
};

// For each page, the share of the query that it has, and its phrase that is most like the query, both from 0 to 1
const rank = (query, index) => {
  const phrases = phrasesOf(index), pages = pagesOfWords(index, phrases);
  const weight = word => stopwords.has(word) ? .1 : Math.log(1 + index.docnames.length / pages.get(word).size);
  const sum = values => values.reduce((a, b) => a + b, 0);
  // A word that no page has stands for those that contain it, as `cardinal` for `cardinality`; or it is ignored
  const known = word => pages.has(word) ? [word] : word.length < 3 ? [] : [...pages.keys()].filter(o => o.includes(word));
  const asked = wordsOf(query).map(known).filter(words => words.length)
    .map(words => ({words, weight: Math.min(...words.map(weight))}));
  const all = sum(asked.map(o => o.weight));
  const common = has => sum(asked.map(o => o.words.some(has) ? o.weight : 0));
  const best = new Map();
  for (const phrase of phrases) {
    const both = common(word => phrase.words.includes(word));
    if (!both) continue;
    const likeness = both / Math.sqrt(all * Math.max(both, sum(phrase.words.map(weight))));
    if (likeness > (best.get(phrase.page)?.likeness ?? 0)) best.set(phrase.page, {likeness, phrase});
  }
  return index.docnames.map((_, page) => (
    {page, likeness: 0, ...best.get(page), share: common(word => pages.get(word).has(page)) / all}));
};

// Called by Sphinx; the results are shown from the last one
Search._performSearch = (query, searchTerms, excludedTerms, highlightTerms, objectTerms) => {
  const {docnames, titles, filenames} = Search._index;
  const found = rank(query, Search._index).filter(o => o.share > .5).map(({page, likeness, phrase, share}) => {
    const section = likeness > .5 && phrase.anchor ? phrase : {anchor: null, heading: null};
    const title = section.heading ? `${titles[page]} > ${section.heading}` : titles[page];
    const score = 2 * likeness + share - demotion(docnames[page]);
    const anchor = section.anchor ? "#" + section.anchor : "";
    return [docnames[page], title, anchor, null, score, filenames[page], SearchResultKind.text];
  });
  const names = [...objectTerms].flatMap(term => Search.performObjectSearch(term, objectTerms))
    .filter(([page]) => isModule(page)).map(([page, name, anchor, description, , file, kind]) => (
      [page, name, anchor, description, -3, file, kind]));
  return [...names, ...found].sort(_orderResultsByScoreThenName);
};
