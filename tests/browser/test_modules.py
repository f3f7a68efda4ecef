"""The dashboard's pure modules, called in the browser that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from api.dashboard.files import dashboard_files
from tests.browser.chromium import visiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from tests.browser.stage import Stage

MINUTE, DAY = 60_000, 86_400_000


@pytest.fixture(scope="module")
async def page(browser: Browser, stage: Stage) -> AsyncIterator[Page]:
    async with visiting(browser, stage.url) as visit:
        yield await visit.open("/login")


async def called(page: Page, module: str, body: str, *arguments: Any) -> Any:
    """What an expression with the module as `m` and the arguments as `a` comes to."""
    address = f"/assets/{dashboard_files().stamp}/js/{module}"
    script = f"async ([address, a]) => {{ const m = await import(address); return {body}; }}"
    return await page.evaluate(script, [address, list(arguments)])


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 s"),
        (59_400, "59 s"),
        (60_000, "1 min"),
        (90_000, "1 min 30 s"),
        (15 * MINUTE + 20_000, "15 min"),
        (59 * MINUTE + 59_700, "1 h"),
        (3 * 3_600_000 + 5 * MINUTE, "3 h 5 min"),
        (DAY, "1 d"),
        (4 * DAY + 3 * 3_600_000, "4 d 3 h"),
        (30 * DAY + 3_600_000, "30 d"),
    ],
)
async def test_durations_have_two_units_at_most(page: Page, ms: int, words: str) -> None:
    assert await called(page, "words/time.js", "m.duration(a[0])", ms) == words


async def test_shares_and_counts_are_short(page: Page) -> None:
    shares = [0, 0.00001, 0.004, 0.0123, 0.37, 1]
    words = await called(page, "words/numbers.js", "a[0].map(m.percent)", shares)
    assert words == ["0 %", "< 0.01 %", "0.4 %", "1.2 %", "37 %", "100 %"]
    counts = await called(page, "words/numbers.js", "a[0].map(m.short)", [9_999, 12_345, 3_400_000])
    assert counts == ["9,999", "12.3K", "3.4M"]


async def test_events_are_whole_however_they_are_cut(page: Page) -> None:
    text = ': listening\n\nevent: job\ndata: {"a": 1}\n\n: heartbeat\n\ndata: {"b":\ndata: 2}\n\n'
    body = """(() => {
        const found = [];
        const parse = m.createParser((name, data) => found.push([name, data]),
            () => found.push("comment"));
        for (const piece of a[0]) parse(piece);
        return found;
    })()"""
    whole = ["comment", ["job", {"a": 1}], "comment", ["message", {"b": 2}]]
    for size in (1, 2, 7, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert await called(page, "link/event_parser.js", body, pieces) == whole


async def test_bars_know_what_kind_of_slot_they_are(page: Page) -> None:
    columns = ["ts", "o", "h", "l", "c", "v", "is_gap", "gap_reason"]
    rows = [
        [0, 1, 2, 0.5, 1.5, 9, False, None],
        [1, 1.5, 1.5, 1.5, 1.5, 0, True, "no_trade"],
        [2, None, None, None, None, None, True, "missing"],
        [3, 1, 2, 0.5, 1.5, 9, False, "partial"],
    ]
    table = {"columns": columns, "rows": rows}
    kinds = await called(
        page, "views/chart/bars.js", "m.barsOf(a[0]).map((bar) => bar.kind)", table
    )
    assert kinds == ["bar", "no_trade", "missing", "partial"]


async def test_loaded_stretches_are_joined_once(page: Page) -> None:
    def bars(*times: int, close: int) -> list[dict[str, int]]:
        return [{"ts": ts, "c": close} for ts in times]

    body = "m.merged(a[0], a[1]).map((bar) => [bar.ts, bar.c])"
    module = "views/chart/bars.js"
    after = await called(page, module, body, bars(1, 2, 3, close=1), bars(3, 4, close=2))
    assert after == [[1, 1], [2, 1], [3, 2], [4, 2]]
    before = await called(page, module, body, bars(5, 6, close=1), bars(3, 4, close=2))
    assert before == [[3, 2], [4, 2], [5, 1], [6, 1]]
    assert await called(page, module, body, bars(5, close=1), []) == [[5, 1]]


async def test_a_live_bar_is_made_of_prices_and_never_of_the_past(page: Page) -> None:
    last = {"ts": 10 * MINUTE, "c": 5}
    body = "m.liveBar(a[0], a[1], a[2], a[3], 60000)"
    module = "views/chart/bars.js"
    first = await called(page, module, body, None, last, 7, 11 * MINUTE + 5)
    assert (first["ts"], first["o"], first["h"], first["l"], first["c"]) == (
        11 * MINUTE,
        5,
        7,
        5,
        7,
    )
    lower = await called(page, module, body, first, last, 4, 11 * MINUTE + 9)
    assert (lower["o"], lower["h"], lower["l"], lower["c"]) == (5, 7, 4, 4)
    later = await called(page, module, body, lower, last, 6, 13 * MINUTE)
    assert (later["o"], later["ts"]) == (6, 13 * MINUTE), "a bar between is not known"
    assert await called(page, module, body, None, last, 6, 10 * MINUTE + 30_000) is None


async def test_days_that_are_whole_are_one_cell(page: Page) -> None:
    series = {
        "expected": [0, 24, 24, 24, 24, 24, 24],
        "missing": [0, 0, 0, 3, 24, 0, 0],
        "unconfirmed": [0, 0, 0, 1, 0, 0, 2],
    }
    runs = await called(page, "views/quality/days.js", "m.runsOf(a[0])", series)
    assert [(each["level"], each["from"], each["length"]) for each in runs] == [
        ("none", 0, 1),
        ("whole", 1, 2),
        ("some", 3, 1),
        ("most", 4, 1),
        ("whole", 5, 1),
        ("unconfirmed", 6, 1),
    ]
    heights = {each["level"]: each["height"] for each in runs}
    order = ["whole", "unconfirmed", "some", "most"]
    assert sorted(order, key=heights.__getitem__) == order[::-1], "less is lower, in any colour"


async def test_a_day_says_what_is_missing_and_what_is_unconfirmed(page: Page) -> None:
    series = {
        "symbol": "BTC/USDT",
        "timeframe": "1h",
        "expected": [24, 24, 24, 24],
        "missing": [0, 3, 3, 0],
        "unconfirmed": [0, 0, 2, 2],
    }
    words = "[0, 1, 2, 3].map((at) => m.wordsOf(a[0], at, 0).split(': ')[1])"
    assert await called(page, "views/quality/days.js", words, series) == [
        "all 24 bars are there",
        "3 of 24 bars missing",
        "3 of 24 bars missing, 2 unconfirmed",
        "2 of 24 bars unconfirmed",
    ]


@pytest.mark.parametrize(
    ("first_at", "until"), [(9 * DAY, 10 * DAY), (6 * DAY, None)], ids=["young", "too old"]
)
async def test_a_silent_series_is_unconfirmed_for_three_days(
    page: Page, first_at: int, until: int | None
) -> None:
    to = 10 * DAY - 3 * MINUTE
    silence = [9 * DAY, to, 1, first_at, first_at, 9 * DAY, to, 0, 0]
    job = {
        "timeframe": "1m",
        "cursor": {"since_ms": 9 * DAY},
        "progress": {"silences": [silence]},
    }
    found = await called(page, "words/jobs.js", "m.unconfirmedUntil(a[0], a[1])", job, 10 * DAY)
    assert found == until


async def test_rates_follow_the_cursor_and_are_forgotten(page: Page) -> None:
    body = """(() => {
        const rates = m.createBarRates();
        const job = (since) => ({id: "1", timeframe: "1m",
            cursor: {since_ms: since, until_ms: 9e9, done: false}});
        rates.note(job(60000), 0);
        const unknown = rates.of(job(60000), 0);
        rates.note(job(60000 * 1001), 10000);
        return [unknown, rates.of(job(0), 10000), rates.of(job(0), 60000)];
    })()"""
    assert await called(page, "bar_rates.js", body) == [None, 100, None]


async def test_a_patch_keeps_elements_and_changes_what_differs(page: Page) -> None:
    body = """(async () => {
        const {h} = await import(a[0]);
        const root = document.createElement("div");
        document.body.append(root);
        const seen = [];
        const mount = (node) => seen.push(node.isConnected);
        const hook = {mount, unmount: () => seen.push("gone")};
        const item = (key, words, more) => h("li", {key, ...more}, words);
        m.patch(root, h("ul", null, item("a", "1", {hook}), item("b", "2"), "text"));
        const [first, second] = root.querySelectorAll("li");
        m.patch(root, h("ul", null, item("b", "2!"), item("a", "1", {hook}), item("c", "<b>")));
        const after = [...root.querySelectorAll("li")];
        const kept = after[0] === second && after[1] === first;
        m.patch(root, h("ul", null, item("c", "<b>")));
        const text = root.textContent;
        root.remove();
        return [kept, seen, text];
    })()"""
    element = f"/assets/{dashboard_files().stamp}/js/frame/element.js"
    assert await called(page, "frame/patch.js", body, element) == [True, [True, "gone"], "<b>"]
