"use strict";
// The browser of transcripts. All texts go in as text, never as markup; nothing is loaded from anywhere.
(() => {
  const ROW = 62, AHEAD = 8, KEPT_BLOCKS = 6;
  const byId = (id) => document.getElementById(id);
  const h = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("aria-")) { element.setAttribute(key, String(value)); continue; }
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(3)) {
      if (child !== null && child !== undefined && child !== false)
        element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return element;
  };
  const textOf = (id) => { const found = byId(id); return found ? found.textContent : null; };
  const list = (value) => (Array.isArray(value) ? value : []);
  const obj = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(textOf(id)), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  const blocks = new Map();
  async function block(number) {
    if (!blocks.has(number)) {
      blocks.set(number, unpacked(`b${number}`));
      if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
    }
    return blocks.get(number);
  }
  const pictureUrl = (digest) => {
    const data = textOf(`p-${digest}`);
    return data ? `data:image/webp;base64,${data}` : null;
  };

  // --- the main tables ------------------------------------------------------------------------------------------
  for (const input of document.querySelectorAll(".find-metric")) {
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of input.closest("details").querySelectorAll("tbody tr"))
        row.hidden = !row.firstElementChild.textContent.toLowerCase().includes(wanted);
    });
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.more:not([open]), #episode details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

  // --- the list -------------------------------------------------------------------------------------------------
  const named = JSON.parse(textOf("run-names")), runs = named.map(([name]) => name), tasks = named.map(([, task]) => task);
  const [RUN, BLOCK, AT, ID, REPEAT, CATEGORY, OUTCOMES, ROUND, FLAGS, SNIPPET, PICTURE] = [...Array(11).keys()];
  let rows = [], outcomes = [], categories = [], shown = [], current = -1, opened = 0;
  let haystack = null, preparing = null;
  const controls = {};

  function select(name, label, entries) {
    if (entries.length < 2) return null;
    const input = h("select", { name, on: { change: filter } }, h("option", { value: "" }, "all"),
      entries.map(([value, text, n]) => h("option", { value }, n === undefined ? text : `${text} (${n})`)));
    controls[name] = input;
    return h("label", {}, label, input);
  }
  function counted(values, names) {
    const n = new Map();
    for (const value of values) n.set(value, (n.get(value) || 0) + 1);
    return [...n.keys()].map((value) => [value, names(value), n.get(value)]);
  }
  function flag(name, label, bit) {
    const n = rows.filter((row) => row[FLAGS] & bit).length;
    const input = h("input", { type: "checkbox", disabled: n === 0, on: { change: filter } });
    input.bit = bit;
    controls[name] = input;
    return h("label", { class: "flag" }, input, `${label} (${n})`);
  }
  function makeFilters() {
    const verified = rows.some((row) => row[ROUND] !== -1);
    const named = (names) => (value) => (names[value] === null ? "none" : names[value]);
    const round = (value) => (value === null ? "never right" : value === 0 ? "right at once" : `round ${value}`);
    const inOrder = (entries) => entries.sort((a, b) => String(a[1]).localeCompare(String(b[1])));
    const search = h("input", { type: "search", placeholder: "any word", autocomplete: "off", spellcheck: "false",
      "aria-keyshortcuts": "/", on: { input: filter, focus: prepareSearch } });
    controls.search = search;
    const form = byId("filters");
    const parts = [
      h("label", {}, "Search what was said", search),
      select("run", "Run", runs.length > 1 ? counted(rows.map((row) => row[RUN]), (value) => runs[value]) : []),
      select("outcome", "Outcome", inOrder(counted(rows.flatMap((row) => row[OUTCOMES]), named(outcomes)))),
      verified ? select("round", "Solved in", counted(rows.map((row) => row[ROUND]).filter((r) => r !== -1)
        .sort((a, b) => (a === null) - (b === null) || a - b), round)) : null,
      select("category", "Category", inOrder(counted(rows.map((row) => row[CATEGORY]), named(categories)))),
      flag("disagreement", "judges disagree", 1), flag("leak", "answer leaked", 2), flag("error", "error", 4),
      h("button", { type: "button", on: { click: clearFilters } }, "Clear"),
    ];
    form.append(...parts.filter(Boolean));
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  function clearFilters() {
    for (const input of Object.values(controls)) if (input.type === "checkbox") input.checked = false; else input.value = "";
    filter();
  }

  function prepareSearch() {
    if (haystack || preparing) return preparing;
    preparing = (async () => {
      const found = new Array(rows.length).fill("");
      const at = new Map();
      rows.forEach((row, number) => {
        if (!at.has(row[BLOCK])) at.set(row[BLOCK], []);
        at.get(row[BLOCK]).push(number);
      });
      const texts = [];
      const collect = (value) => {
        if (typeof value === "string") texts.push(value);
        else if (Array.isArray(value)) value.forEach(collect);
        else if (value && typeof value === "object") for (const [key, part] of Object.entries(value)) if (key !== "digest" && key !== "mime") collect(part);
      };
      let done = 0;
      for (const [number, own] of at) {
        const episodes = await unpacked(`b${number}`);
        for (const one of own) {
          texts.length = 0;
          collect(episodes[rows[one][AT]]);
          found[one] = texts.join("\n").toLowerCase();
        }
        done += own.length;
        if (controls.search.value) byId("count").textContent = `Reading ${done} of ${rows.length} transcripts…`;
        await new Promise((go) => setTimeout(go));
      }
      haystack = found;
      if (controls.search.value) filter();
    })();
    return preparing;
  }

  function filter() {
    const began = performance.now();
    const pick = (name) => (controls[name] && controls[name].value !== "" ? controls[name].value : null);
    const number = (name) => { const value = pick(name); return value === null ? null : Number(value); };
    const run = number("run"), outcome = number("outcome"), category = number("category"), round = pick("round");
    const bits = ["disagreement", "leak", "error"].reduce((all, name) => all | (controls[name].checked ? controls[name].bit : 0), 0);
    const words = controls.search.value.toLowerCase().trim();
    if (words && !haystack) prepareSearch();
    const stays = current >= 0 ? shown[current] : -1;
    shown = [];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      if (run !== null && row[RUN] !== run) continue;
      if (category !== null && row[CATEGORY] !== category) continue;
      if (outcome !== null && !row[OUTCOMES].includes(outcome)) continue;
      if (round !== null && String(row[ROUND]) !== round) continue;
      if (bits && (row[FLAGS] & bits) !== bits) continue;
      if (words && !(haystack ? haystack[i].includes(words) : `${row[ID]} ${row[SNIPPET]}`.toLowerCase().includes(words))) continue;
      shown.push(i);
    }
    current = stays >= 0 ? shown.indexOf(stays) : -1;
    byId("list").scrollTop = 0;
    draw();
    byId("count").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} episodes` +
      (words && !haystack ? " so far; reading the transcripts…" : "");
    byId("browser").dataset.filterMs = (performance.now() - began).toFixed(1);
  }

  function draw() {
    const pane = byId("list"), inner = byId("rows");
    inner.style.height = `${shown.length * ROW}px`;
    const from = Math.max(0, Math.floor(pane.scrollTop / ROW) - AHEAD);
    const to = Math.min(shown.length, Math.ceil((pane.scrollTop + pane.clientHeight) / ROW) + AHEAD);
    const items = [];
    for (let place = from; place < to; place++) items.push(item(place));
    if (current >= 0 && (current < from || current >= to)) items.push(item(current)); // what aria-activedescendant names
    inner.replaceChildren(...items);
    if (current >= 0) pane.setAttribute("aria-activedescendant", `o${shown[current]}`);
    else pane.removeAttribute("aria-activedescendant");
  }
  function item(place) {
    const row = rows[shown[place]], url = row[PICTURE] ? pictureUrl(row[PICTURE]) : null;
    const flags = [row[FLAGS] & 1 && "disagree", row[FLAGS] & 2 && "leak", row[FLAGS] & 4 && "error"].filter(Boolean);
    const what = [...row[OUTCOMES].slice(0, 3).map((name) => outcomes[name]), ...flags].join(" · ");
    const category = categories[row[CATEGORY]];
    const made = h("div", { class: "item", role: "option", id: `o${shown[place]}`, "aria-selected": place === current,
      "aria-setsize": shown.length, "aria-posinset": place + 1, on: { click: () => choose(place) } },
      url ? h("img", { src: url, alt: "" }) : h("span", { class: "nopic", "aria-hidden": true }),
      h("div", {}, h("span", { class: "id" }, controls.run && !controls.run.value ? h("span", { class: "run" }, runs[row[RUN]]) : null,
        row[ID], row[REPEAT] ? ` (repeat ${row[REPEAT]})` : ""),
        h("span", { class: "what" }, what || "-"),
        h("span", { class: "text" }, category && !row[ID].startsWith(category) ? `${category} · ` : "", row[SNIPPET])));
    made.style.top = `${place * ROW}px`;
    return made;
  }
  function choose(place) {
    if (!shown.length) return;
    current = Math.max(0, Math.min(shown.length - 1, place));
    const pane = byId("list"), top = current * ROW;
    if (top < pane.scrollTop) pane.scrollTop = top;
    else if (top + ROW > pane.scrollTop + pane.clientHeight) pane.scrollTop = top + ROW - pane.clientHeight;
    draw();
    open(shown[current]);
  }
  async function open(number) {
    const ticket = ++opened, row = rows[number], pane = byId("episode");
    let content;
    try {
      content = render((await block(row[BLOCK]))[row[AT]], row);
    } catch (error) {
      content = [h("p", { class: "notice" }, `This transcript cannot be shown: ${error}`)];
    }
    if (ticket !== opened) return;
    pane.replaceChildren(...content.flat(3).filter(Boolean));
    pane.scrollTop = 0;
    document.body.classList.add("reading");
    linkTo(`#episode-${number}`);
  }
  function close() {
    opened++;
    current = -1;
    byId("episode").replaceChildren(hint());
    document.body.classList.remove("reading");
    linkTo("#transcripts");
    draw();
  }
  function linkTo(hash) {
    try { history.replaceState(null, "", hash); } catch { /* some browsers forbid it to files: the link is a help only */ }
  }
  const hint = () => h("p", { class: "quiet" }, "Choose an episode to read it.");

  // --- an episode -----------------------------------------------------------------------------------------------
  const REASONS = { solved: "solved", rounds_used: "not solved, all rounds used", kept: "the right answer was kept",
    marked_right: "a person marked the reply as right",
    flipped: "the right answer was given up", no_partner: "not played: no other episode's feedback fits",
    leak_dropped: "dropped: the feedback leaked, also when written again", reply_failed: "the reply failed",
    feedback_failed: "the feedback failed", judge_failed: "no verdict: a judge failed", notes_failed: "the notetaker failed",
    context_overflow: "the conversation does not fit the model" };
  const STOPS = { right: "right at once", marked_right: "right, as a person says", invalid: "wrong, and no provider solved it",
    provider_wrong: "wrong, and the provider did not solve it", flip_played: "right, and tried with feedback (flip sample)",
    flip_drawn: "right, and drawn for the flip sample" };
  const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  const tag = (text, kind) => h("span", { class: `tag ${kind || ""}` }, text);
  const right = (value) => (value ? tag("✓ right", "good") : tag("✗ wrong", "bad"));
  const folded = (title, cls, ...children) => h("details", { class: cls }, h("summary", {}, title), ...children);

  function render(episode, row) {
    const turns = list(episode.turns), questions = new Map(list(episode.questions).map((q) => [q.id, q]));
    const notes = new Map(), children = new Map(), own = [], answers = [], solved = [];
    for (const turn of turns) {
      if (turn.notes || turn.role === "notetaker") { push(notes, turn.parent, turn); continue; }
      if (turn.role === "provider") { solved.push(turn); continue; }
      if (turn.question && questions.size) { answers.push(turn); continue; }
      push(children, turn.parent ?? null, turn);
      own.push(turn);
    }
    const last = new Map();
    const known = new Set(own.map((turn) => turn.index));
    const context = { episode, notes, children, last, solved, ends: list(episode.ends) };
    const roots = own.filter((turn) => turn.parent === null || turn.parent === undefined || !known.has(turn.parent));
    const told = new Set(), done = new Set();
    Object.assign(context, { told, done });
    return [
      head(episode, row),
      roots.length ? null : providers(context),
      roots.map((turn, place) => place === 0 || !turn.branch ? chain(turn, context)
        : folded(`Branch ${turn.branch}: a conversation of its own`, "branch", chain(turn, context))),
      own.some((turn) => !done.has(turn)) ? folded("Turns that continue none of the others", "branch",
        own.filter((turn) => !done.has(turn)).map((turn) => said(turn, context))) : null,
      answers.length ? asked(answers, questions, context) : null,
      context.ends.filter((end) => !told.has(end)).map((end) => ended(end)),
    ];
  }
  const push = (map, key, value) => { if (!map.has(key)) map.set(key, []); map.get(key).push(value); };

  let twins = null;
  function others(row) {
    if (runs.length < 2) return null;
    const item = (one) => JSON.stringify([tasks[one[RUN]], one[ID], one[REPEAT]]);
    if (!twins) {
      twins = new Map();
      rows.forEach((one, number) => push(twins, item(one), number));
    }
    const found = twins.get(item(row)).filter((number) => rows[number] !== row);
    if (!found.length || found.length > 12) return null;
    return fact("same item in", found.map((number) => h("div", {}, h("button", { type: "button", class: "link",
      on: { click: () => { current = shown.indexOf(number); draw(); open(number); } } }, runs[rows[number][RUN]]),
      ` ${rows[number][OUTCOMES].slice(0, 3).map((name) => outcomes[name]).join(", ")}`)));
  }
  function head(episode, row) {
    const options = Object.entries(obj(episode.options));
    const flags = [row[FLAGS] & 1 && "judges disagree", row[FLAGS] & 2 && "answer leaked", row[FLAGS] & 4 && "error"].filter(Boolean);
    return [
      h("h3", {}, row[ID], row[REPEAT] ? ` (repeat ${row[REPEAT]})` : ""),
      h("div", { class: "tags" }, row[OUTCOMES].map((name) => tag(outcomes[name])), flags.map((name) => tag(name, "warn"))),
      h("dl", { class: "facts" },
        runs.length > 1 ? fact("run", runs[row[RUN]]) : null,
        others(row),
        episode.category != null ? fact("category", episode.category) : null,
        episode.cluster != null ? fact("cluster", episode.cluster) : null,
        episode.target ? fact("target", episode.target) : null,
        options.length ? fact("options", options.map(([letter, text]) => h("div", {}, `${letter}. ${text}`,
          letter === episode.target ? [" ", tag("✓ target", "good")] : null))) : null,
        episode.stop_reason !== "played" ? fact("ended", STOPS[episode.stop_reason] || episode.stop_reason || episode.status || "?") : null,
        fact("models", Object.entries(obj(episode.models)).map(([role, name]) => h("div", {}, `${role}: ${name}`)))),
      episode.error ? h("p", { class: "notice" }, `${episode.status || "error"}: ${episode.error}`) : null,
      episode.system ? folded("System message", "", h("p", { class: "said" }, episode.system)) : null,
    ];
  }

  function providers(context) {
    const own = context.solved;
    context.solved = [];
    if (!own.length) return null;
    const n = own.filter((turn) => turn.judgement && turn.judgement.correct).length;
    return folded(`What ${own.length > 1 ? "the providers" : "the provider"} answered (${n} of ${own.length} right)`, "branch",
      own.map((turn) => [h("h5", {}, turn.branch || "provider"), said(turn, context)]));
  }
  function chain(turn, context) {
    const parts = [];
    for (let at = turn; at && !context.done.has(at); ) {
      context.done.add(at);
      parts.push(said(at, context), taken(at, context));
      if (at === turn) { context.asked = context.asked || JSON.stringify(obj(at.user).content); parts.push(providers(context)); }
      const next = context.children.get(at.index) || [];
      const same = next.find((one) => (one.branch || "") === (at.branch || ""));
      for (const one of next) {
        if (one === same) continue;
        const heading = `Branch ${one.branch || one.index}`;
        parts.push(h("div", { class: "branch" }, h("h5", {}, heading, " ", endOf(one.branch, context)), chain(one, context)));
      }
      at = same;
    }
    return parts;
  }
  function endOf(branch, context) {
    const end = context.ends.find((one) => one.branch === branch);
    if (!end) return null;
    context.told.add(end);
    const kind = { solved: "good", marked_right: "good", kept: "good", rounds_used: "bad", flipped: "bad" }[end.reason] || "warn";
    const glyph = { good: "✓ ", bad: "✗ ", warn: "" }[kind];
    return [tag(glyph + (REASONS[end.reason] || end.reason), kind), end.error ? h("span", { class: "warn" }, ` ${end.error}`) : null];
  }
  const ended = (end) => h("p", { class: "read" }, `Branch ${end.branch}: ${REASONS[end.reason] || end.reason}`,
    end.error ? ` (${end.error})` : "", end.feedback && end.feedback.text ? h("span", { class: "said" }, end.feedback.text) : "");

  function asked(answers, questions, context) {
    const grouped = new Map();
    for (const turn of answers) push(grouped, turn.question, turn);
    return [...grouped].map(([id, own]) => {
      const question = obj(questions.get(id));
      const facts = [
        question.target ? fact("target", question.target) : null,
        list(question.items).length ? fact("a whole answer names", question.items.join(", ")) : null,
        list(question.evidence).length ? fact("evidence", `turn ${question.evidence.map((n) => n + 1).join(", ")}`) : null,
        question.should_refuse ? fact("to be refused", "nothing in the conversation holds the answer") : null,
        Object.keys(obj(question.options)).length ? fact("options", Object.entries(question.options).map(([l, t]) => h("div", {}, `${l}. ${t}`))) : null,
      ];
      return [h("h4", {}, `Question ${id}${question.ability ? ` · ${question.ability}` : ""}`),
        h("p", { class: "said" }, question.text || ""), h("dl", { class: "facts" }, facts),
        own.map((turn) => h("div", { class: "branch" }, h("h5", {}, String(turn.branch || "answer").replace(`/${id}`, "")),
          said(turn, context, question.text)))];
    });
  }

  function said(turn, context, known) {
    const content = list(obj(turn.user).content), feedback = turn.feedback;
    const texts = content.filter((part) => typeof part === "string");
    const who = feedback ? `Feedback (${feedback.kind}) by ${feedback.author}` : turn.role === "provider" ? "Question to the provider" : "User";
    const repeated = turn.role === "provider" ? JSON.stringify(content) === context.asked
      : known !== undefined && texts.length === 1 && content.length === 1 && texts[0].trim() === String(known).trim();
    const leak = feedback && obj(feedback.leak).found;
    return [
      repeated ? null : h("div", { class: `message ${feedback ? "feedback" : ""}` },
        h("div", { class: "who" }, who, leak ? tag(`answer leaked: ${String(leak).replace("_", " ")}`, "warn") : null,
          feedback && feedback.source ? h("span", {}, `written for ${feedback.source}`) : null,
          turn.round ? h("span", {}, `round ${turn.round}`) : null),
        content.map((part) => (typeof part === "string" ? h("p", { class: "said" }, part) : picture(part))),
        feedback && feedback.draft ? folded("What was written first, and leaked", "", h("p", { class: "said" }, feedback.draft.text)) : null),
      seen(turn.seen),
      reply(turn.reply, turn.role || "receiver"),
      turn.judgement ? h("p", { class: "read" }, right(turn.judgement.correct), " answer read: ",
        h("b", {}, obj(turn.judgement.extraction).answer ?? "none"), ` (${obj(turn.judgement.extraction).method || "?"})`,
        turn.judgement.overruled ? ", marked right by a person; the verifier took it for wrong" : null) : null,
      verdicts(list(turn.verdicts), turn.verdict, "What the judges say"),
      verdicts(list(turn.reasoning_verdicts), turn.reasoning_verdict, "What they say of the reasoning"),
    ];
  }
  function picture(part) {
    const { digest, width, height } = obj(part), size = `${width} x ${height} pixels`;
    const url = digest ? pictureUrl(digest) : null;
    if (!url) return h("div", { class: "gone" }, `A picture of ${size} that was not kept (${digest})`);
    return h("div", { class: "pictures" }, h("figure", {}, h("img", { src: url, alt: `Picture of ${size}`, loading: "lazy" }),
      h("figcaption", {}, `${size}, shown small`)));
  }
  function seen(value) {
    if (!value || (!value.cut_turns && !value.notes_chars)) return null;
    const what = [value.cut_turns && `${value.cut_turns} earlier turns were not shown`,
      value.cut_pictures && `nor their ${value.cut_pictures} pictures`,
      value.notes_chars && `it was shown ${value.notes_chars} characters of notes${value.notes_cut ? ", cut to their limit" : ""}`].filter(Boolean);
    return h("p", { class: "read quiet" }, what.join("; "));
  }
  const THINK = /^\s*<think(?:ing)?>([\s\S]*?)<\/think(?:ing)?>\s*/i;
  function reply(value, role) {
    const one = obj(value), text = String(one.text ?? ""), thought = THINK.exec(text);
    const reasoning = [one.reasoning, thought && thought[1]].filter(Boolean).join("\n");
    const status = one.status && one.status !== "ok" ? tag(one.status, "warn") : null;
    return h("div", { class: "message reply" },
      h("div", { class: "who" }, one.model || role, role === "receiver" ? null : h("span", {}, role), status,
        one.finish_reason === "length" ? tag("cut at the token limit", "warn") : null),
      one.error ? h("p", { class: "read bad" }, one.error) : null,
      reasoning ? folded(`Reasoning (${reasoning.length.toLocaleString("en")} characters)`, "", h("p", { class: "said" }, reasoning)) : null,
      text ? h("p", { class: "said" }, thought ? text.slice(thought[0].length) : text) : one.error ? null : h("p", { class: "quiet" }, "(nothing)"));
  }
  function verdicts(all, panel, title) {
    if (!all.length && !panel) return null;
    const what = (v) => [v.status !== "scored" ? `${v.status}` : null, v.score != null ? `score ${v.score}` : null, v.label,
      Object.entries(obj(v.fields)).map(([key, value]) => `${key}: ${value === "" ? "-" : value}`).join(", ")].filter(Boolean).join(", ");
    const line = (v, cls) => h("tr", { class: cls }, h("th", { scope: "row" }, v.judge), h("td", {}, what(v) || "-"),
      h("td", {}, v.reason || "", v.reply && v.reply.error ? ` ${v.reply.error}` : "",
        v.reply && v.reply.text ? folded("its reply", "", h("span", { class: "said" }, v.reply.text)) : null));
    return h("div", { class: "wide" }, h("table", { class: "verdicts" }, h("caption", {}, title),
      h("thead", {}, h("tr", {}, ["judge", "says", "why"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, all.map((v) => line(v)), panel ? line(panel, "panel") : null)));
  }
  function taken(turn, context) {
    return (context.notes.get(turn.index) || []).map((own) => {
      const after = own.notes ? String(own.notes.text ?? "") : null, key = own.branch || "";
      const before = context.last.get(key) ?? "";
      if (after !== null) context.last.set(key, after);
      const kept = obj(own.notes).status === "kept" ? ", unreadable: the old ones stay" : "";
      const failed = after === null || (own.reply && own.reply.status && own.reply.status !== "ok");
      return folded(`Notes after this turn (${key})${kept}${obj(own.notes).cut ? ", cut to their limit" : ""}`, "",
        failed ? reply(own.reply, "notetaker") : null, after === null ? null : compared(lines(before), lines(after)));
    });
  }
  function lines(text) {
    try { text = JSON.stringify(JSON.parse(text), null, 1); } catch { /* notes are what they are */ }
    return text ? text.split("\n") : [];
  }
  function compared(before, after) {
    const out = h("div", { class: "notes" });
    const plain = before.length * after.length > 400000 ? after.map((line) => ["span", line]) : difference(before, after);
    for (const [kind, line] of plain) out.append(h(kind, {}, line || " "));
    return out;
  }
  function difference(a, b) {
    const same = (x, y) => x.replace(/,$/, "") === y.replace(/,$/, "");
    const n = a.length, m = b.length, best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1)), out = [];
    for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--)
      best[i][j] = same(a[i], b[j]) ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    let i = 0, j = 0;
    while (i < n || j < m) {
      if (i < n && j < m && same(a[i], b[j])) { out.push(["span", b[j]]); i++; j++; }
      else if (j < m && (i === n || best[i][j + 1] > best[i + 1][j])) out.push(["ins", b[j++]]);
      else out.push(["del", a[i++]]);
    }
    return out;
  }

  // --- keys -----------------------------------------------------------------------------------------------------
  const isField = (element) => element && /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName) && element.type !== "checkbox";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (document.activeElement === controls.search && controls.search.value) { controls.search.value = ""; filter(); }
      else if (isField(document.activeElement)) byId("list").focus();
      else if (current >= 0) { close(); byId("list").focus(); }
      return;
    }
    if (isField(document.activeElement)) return;
    const page = Math.max(1, Math.floor(byId("list").clientHeight / ROW) - 1);
    const inList = document.activeElement === byId("list");
    const go = { j: 1, k: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity } : {}) }[event.key];
    if (go !== undefined) {
      event.preventDefault();
      if (!inList && document.activeElement !== byId("episode")) byId("list").focus({ preventScroll: false });
      choose(go === -Infinity ? 0 : go === Infinity ? shown.length - 1 : current < 0 ? 0 : current + go);
    } else if (event.key === "/") {
      event.preventDefault();
      controls.search.focus();
      controls.search.select();
    } else if (event.key === "Enter" && inList) {
      if (current < 0) choose(0);
      byId("episode").focus();
    }
  });

  // --- start ----------------------------------------------------------------------------------------------------
  async function start() {
    const waiting = byId("waiting");
    if (typeof DecompressionStream === "undefined") {
      waiting.textContent = "This browser is too old to unpack the transcripts; they are also in episodes.jsonl of each run folder.";
      return;
    }
    const index = await unpacked("index");
    ({ rows, outcomes, categories } = index);
    waiting.hidden = true;
    byId("browser").hidden = false;
    makeFilters();
    byId("list").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
    addEventListener("resize", draw);
    byId("episode").append(hint());
    filter();
    const linked = /^#episode-(\d+)$/.exec(location.hash);
    if (linked && Number(linked[1]) < rows.length) { byId("transcripts").scrollIntoView(); choose(shown.indexOf(Number(linked[1]))); }
    document.body.dataset.ready = "yes";
  }
  start().catch((error) => { byId("waiting").textContent = `The transcripts cannot be unpacked: ${error}`; });
})();
