// The terms of the page: links from the first use of each to its meaning in the list at the end.

/** Where a link would be in the way, or the words are data. */
const NO_TERM_LINKS = "#words, .keys, a, button, code, pre, svg, select, label, summary, table, h1, h2, h3, h4";

function termId(head) {
    return `term-${head.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
}

/** Matches a term as a whole word, in the plural too. */
function termPattern(name) {
    return new RegExp(`\\b${name}s?\\b`, "i");
}

/** The terms of entries of `[heads, meaning]`: "Phase, quantum" has two. */
function termsOf(entries) {
    return entries.flatMap(([head, meaning]) =>
        head.split(", ").map((name) => ({ id: termId(head), meaning, pattern: termPattern(name) })),
    );
}

/** Links the terms that a text uses first, from left to right; returns those that are still without a link. */
function linkText(node, terms) {
    const first = terms
        .map((term) => ({ term, found: term.pattern.exec(node.data) }))
        .filter(({ found }) => found)
        .reduce((least, one) => (least && least.found.index <= one.found.index ? least : one), null);
    if (first === null) {
        return terms;
    }
    const used = node.splitText(first.found.index);
    const rest = used.splitText(first.found[0].length);
    const { id, meaning } = first.term;
    used.replaceWith(element("a", { class: "term", href: `#${id}`, title: meaning }, used.data));
    return linkText(
        rest,
        terms.filter((term) => term.id !== id),
    );
}

/** Links the first use of each term within `root` to its meaning. */
function linkTerms(root, entries) {
    for (const head of root.querySelectorAll(".words-list dt")) {
        head.id = termId(head.textContent);
    }
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
        if (!walker.currentNode.parentElement.closest(NO_TERM_LINKS)) {
            texts.push(walker.currentNode);
        }
    }
    texts.reduce((terms, node) => linkText(node, terms), termsOf(entries));
}
