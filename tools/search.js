// Of the pages that have all words of a search, those with more of them in the title come first; lists of pages and names in module notebooks last
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0, // as Sphinx has them
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, title, , , score]) => {
    const query = decodeURIComponent((/[?&]q=([^&]*)/.exec(window.location.search) || ["", ""])[1].replace(/\+/g, " "));
    const words = query.toLowerCase().split(/\W+/).filter(o => o.length > 2);
    const inTitle = words.filter(o => title.toLowerCase().includes(o.replace(/s$/, "")));
    return score + 4 * inTitle.length - (/^nbs\/\d/.test(page) ? 50 : page.includes("/") || page === "index" ? 0 : 15);
  },
};
