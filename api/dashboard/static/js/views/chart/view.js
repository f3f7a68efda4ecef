/** Chart: the bars of any stored series, with what is missing shown as missing. */

import { h } from "../../frame/element.js";
import { now } from "../../link/clock.js";
import { linkButton } from "../../parts/button.js";
import { nothing, sentence, skeleton } from "../../parts/shown.js";
import { liveBar } from "./bars.js";
import { moments, moving, timeframes, versionNote } from "./controls.js";
import { createDrawing } from "./drawing.js";
import { barTable, legend, marks } from "./legend.js";
import { createPicker, pairHref, seriesHref } from "./picker.js";
import { sourceOf } from "./sources.js";
import { BarWindow } from "./window.js";

const NEWEST_MS = 1_000;

export function open(app, place) {
  const view = new ChartView(app);
  view.arrive(place);
  return view;
}

class ChartView {
  #app;
  #picker;
  #query = new URLSearchParams();
  #window = null;
  #drawing = null;
  #node = null;
  #hovered = null;
  #live = null;
  #timer = 0;
  #isEmpty = false;
  #failure = null;
  #isDark = null;

  constructor(app) {
    this.#app = app;
    this.#picker = createPicker(app, (href) => app.router.go(href));
  }

  title() {
    return this.#window ? this.#window.source.title : "Chart";
  }

  async arrive(place) {
    this.#query = place.query;
    const source = sourceOf(place.query);
    if (source === null) {
      await this.#chooseFirst();
      return;
    }
    const asOf = momentOf(place.query.get("as_of"));
    const atMs = momentOf(place.query.get("at"));
    this.#window?.close();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#live = null;
    this.#hovered = null;
    const mine = new BarWindow(this.#app.api, source, asOf, this.#app.refresh);
    this.#window = mine;
    if (await mine.begin(atMs)) this.#draw(atMs);
  }

  take(name, data) {
    const source = this.#window?.source;
    if (source?.kind === "pair") {
      if (name === "history" && data.network === source.network) this.#later();
      return;
    }
    if (!source || data.exchange_id !== source.exchangeId || data.symbol !== source.symbol) return;
    if (name === "job" && data.type === "ohlcv_incremental") this.#later();
    if (name === "price") this.#price(data.payload.mid);
  }

  fresh() {
    this.#later();
  }

  close() {
    clearTimeout(this.#timer);
    this.#window?.close();
    this.#picker.close();
  }

  render() {
    const { source, bars = [], about, asOf, error, loading } = this.#window ?? {};
    if (!source) return this.#withoutSource();
    const last = this.#live ?? bars.at(-1);
    return [
      h(
        "div",
        { class: "page-head", key: "head" },
        h("h1", null, source.title),
        h("p", { class: "facts" }, source.where),
        this.#picker.render(),
      ),
      h(
        "div",
        { class: "chart-controls", key: "controls" },
        timeframes(source, about, this.#query),
        moments(this.#app, source, this.#query),
      ),
      versionNote(this.#app, asOf),
      error &&
        h("div", { class: "panel bad", role: "alert", key: "error" }, sentence(error.message)),
      h(
        "section",
        { class: "box chart-box", key: "chart", "aria-label": `Chart of ${source.title}` },
        legend(this.#hovered ?? last),
        this.#canvas(source, bars),
        h(
          "div",
          { class: "chart-foot" },
          marks(bars),
          moving(() => this.#drawing),
        ),
        loading && !bars.length && h("p", { class: "chart-wait", role: "status" }, "Loading bars"),
        !loading &&
          !bars.length &&
          !error &&
          h("p", { class: "chart-wait" }, "There are no bars here."),
      ),
      barTable(bars),
      attribution(),
    ];
  }

  #withoutSource() {
    if (this.#failure) {
      return h("div", { class: "panel bad", role: "alert" }, sentence(this.#failure.message));
    }
    if (!this.#isEmpty) return [h("h1", { key: "h1" }, "Chart"), skeleton(8)];
    return [
      h("h1", { key: "h1" }, "Chart"),
      nothing(
        "No bars are stored yet",
        "They appear here as soon as the first page of a series is stored.",
        this.#app.session.may("operator") && linkButton("Add a series", "/add", { kind: "main" }),
      ),
    ];
  }

  #canvas(source, bars) {
    const shown = bars.findLast((bar) => bar.kind === "bar");
    const words = `${source.title}: ${bars.length} slots loaded${shown ? `, last close ${shown.c}` : ""}. Arrow keys move, plus and minus zoom.`;
    return h("div", {
      class: "chart-canvas",
      key: "canvas",
      role: "img",
      tabindex: "0",
      "aria-label": words,
      "data-bars": bars.length,
      on: { keydown: (event) => this.#onKey(event) },
      hook: {
        mount: (node) => (this.#node = node),
        update: () => this.#repaint(),
        unmount: () => {
          this.#drawing?.remove();
          this.#drawing = null;
          this.#node = null;
        },
      },
    });
  }

  /** Draws what is loaded; the library comes with the first chart. */
  async #draw(atMs) {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    if (!this.#node) return;
    if (!this.#drawing) {
      this.#drawing = await createDrawing(this.#node, {
        onHover: (bar) => {
          if (bar === this.#hovered) return;
          this.#hovered = bar;
          this.#app.refresh();
        },
        onEdge: (edge) => this.#more(edge),
      });
    }
    this.#isDark = this.#app.theme.isDark;
    this.#drawing?.show(this.#window.bars);
    this.#drawing?.look(atMs);
  }

  async #more(edge) {
    const mine = this.#window;
    const came = await mine.more(edge);
    if (!came || mine !== this.#window || !this.#drawing) return;
    const keep = this.#drawing.shift(edge === "start" ? came : 0);
    this.#drawing.show(mine.bars);
    keep();
  }

  /** Reads what is new, a moment after the first sign of it. */
  #later() {
    this.#timer ||= setTimeout(async () => {
      this.#timer = 0;
      const mine = this.#window;
      if (!(await mine?.newest()) || mine !== this.#window || !this.#drawing) return;
      if (this.#live && this.#live.ts <= mine.bars.at(-1).ts) this.#live = null;
      const keep = this.#drawing.shift(0);
      this.#drawing.show(this.#live ? [...mine.bars, this.#live] : mine.bars);
      keep();
    }, NEWEST_MS);
  }

  #price(mid) {
    const { source, bars, asOf, about } = this.#window;
    const isNewest = bars.length > 0 && about?.end && bars.at(-1).ts + source.stepMs >= about.end;
    if (!mid || asOf !== null || !isNewest || source.stepMs > 86_400_000 || !source.stepMs) return;
    const last = bars.findLast((bar) => bar.kind !== "live");
    const bar = liveBar(this.#live, last, mid, now(), source.stepMs);
    if (bar === null) return;
    this.#live = bar;
    this.#drawing?.update(bar);
    this.#app.refresh();
  }

  #repaint() {
    if (!this.#drawing || this.#isDark === this.#app.theme.isDark) return;
    this.#isDark = this.#app.theme.isDark;
    this.#drawing.paint();
  }

  #onKey(event) {
    const keys = {
      ArrowLeft: () => this.#drawing?.scroll(-20),
      ArrowRight: () => this.#drawing?.scroll(20),
      "+": () => this.#drawing?.zoom(0.7),
      "-": () => this.#drawing?.zoom(1 / 0.7),
      End: () => this.#drawing?.look(null),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  async #chooseFirst() {
    try {
      const [market] = (await this.#app.api.get("/series", { limit: 1 })).items;
      const [pair] = market ? [] : (await this.#app.api.get("/history/pairs")).items;
      if (market) this.#app.router.go(seriesHref(market), { replace: true });
      else if (pair) this.#app.router.go(pairHref(pair), { replace: true });
      this.#isEmpty = !market && !pair;
    } catch (error) {
      this.#failure = error;
    }
    this.#app.refresh();
  }
}

function momentOf(text) {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? null : ms;
}

function attribution() {
  return h(
    "p",
    { class: "hint", key: "by" },
    "Chart by ",
    h(
      "a",
      { href: "https://www.tradingview.com/", rel: "noreferrer", target: "_blank" },
      "TradingView Lightweight Charts™",
    ),
    ". Times are local; hover for UTC.",
  );
}
