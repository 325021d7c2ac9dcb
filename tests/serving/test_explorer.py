"""The explorer in a real browser: the distribution's Chromium. Ids are text from strangers."""

import re
import shutil
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from gatas.serving.loaded_model import LoadedModel, load_model
from tests.inference.conftest import trained
from tests.inference.conftest import with_ids as with_prefix
from tests.inference.test_explain_link import by_parts
from tests.serving.conftest import ready, with_ids
from tests.tasks.toys import camps, classifier, likes

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path to open the page with")
TOKEN = "a token of the tests"
HOSTILE = "<img src=x onerror=window.harmed=1>"
WAIT = 30_000


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A tab whose scripts must not fail, nor ask for what the policy forbids."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(WAIT)
    expect.set_options(timeout=WAIT)
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert not faults


def show(page, client, view=""):
    page.goto(f"{client.base_url}{view}")


def answered(client, path, **question):
    """By the server's own thread: a model answers one question at a time."""
    return client.post(path, json=question).json()


def heading(page, text):
    expect(page.get_by_role("heading", level=2).first).to_have_text(text)


def rows(page):
    return page.locator(".rows tbody tr")


def find(page, label):
    return page.get_by_role("combobox", name=label)


def test_search_by_keyboard_shows_a_nodes_prediction_and_rows(page, camp_client):
    show(page, camp_client)
    find(page, "Node").fill("a1")
    expect(page.get_by_role("option")).to_have_text(["a1", *(f"a1{digit}" for digit in range(7))])
    expect(page.get_by_text("More ids match")).to_be_visible()
    find(page, "Node").press("ArrowDown")
    find(page, "Node").press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_have_text("a10")
    find(page, "Node").press("Enter")
    heading(page, "a10")
    assert page.url.endswith("#node=a10")
    explained = answered(camp_client, "/v1/explain", id="a10")
    expect(page.locator(".answer")).to_contain_text(explained["prediction"]["labels"][0])
    expect(rows(page)).to_have_count(min(explained["num_rows"], 10))
    depth = page.locator("section", has_text="Learned depth").locator("tbody tr .number:nth-child(2)")
    expect(depth).to_have_text([f"{100 * q:.1f}%" for q in explained["depth_coefficients"]])
    expect(page.locator("section", has_text="Nearest nodes").get_by_role("link", name="compare")).to_have_count(8)
    expect(page.get_by_role("heading", level=2).first).to_be_focused()


def test_rows_and_picture_light_each_other_by_pointer_and_by_keyboard(page, camp_client):
    show(page, camp_client, "#node=a4")
    link = rows(page).get_by_role("link").first
    link.focus()
    expect(page.locator(".dot.lit text")).to_have_text(link.inner_text())
    expect(page.locator(".told")).to_contain_text("attention")
    link.press("ArrowDown")
    expect(rows(page).get_by_role("link").nth(1)).to_be_focused()
    page.locator(".dot").last.hover()
    expect(page.locator("tr.lit")).to_have_count(1)


def test_a_wider_line_has_more_attention(page, camp_client):
    show(page, camp_client, "#node=a4")
    expect(page.locator("path.line").first).to_be_attached()
    rows(page).locator(".number").first.wait_for()
    widths = page.locator("path.line").evaluate_all("lines => lines.map(line => +line.getAttribute('stroke-width'))")
    assert len(set(widths)) > 1 and max(widths) <= 12


def test_clicks_go_on_from_neighbour_to_neighbour_and_back(page, camp_client):
    show(page, camp_client, "#node=a4")
    link = rows(page).get_by_role("link").first
    second = link.inner_text()
    link.click()
    heading(page, second)
    dot = page.locator(".dot").first
    third = dot.locator("text").text_content()
    dot.locator("circle").last.click()
    heading(page, third)
    page.go_back()
    heading(page, second)
    page.go_back()
    heading(page, "a4")


def test_another_class_is_explained_by_choosing_it(page, camp_client):
    show(page, camp_client, "#node=a4")
    expect(page.locator(".classes a")).to_have_count(2)
    other = page.locator(".classes a:not([aria-current=true])")
    name = other.inner_text()
    other.click()
    expect(page.locator(".classes a[aria-current=true]")).to_have_text(name)
    expect(page.locator(".rows .note")).to_contain_text(f"log-odds of “{name}”")


def test_a_copied_address_opens_the_same_view(page, browser, camp_client):
    show(page, camp_client, "#node=a4")
    heading(page, "a4")
    find(page, "Compare a4 with").fill("a6")
    page.get_by_role("option", name="a6", exact=True).click()
    heading(page, "a4 and a6")
    page.get_by_role("button", name="Copy address").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    address = page.evaluate("navigator.clipboard.readText()")
    other = browser.new_page()
    other.goto(address)
    heading(other, "a4 and a6")
    other.close()


def test_two_nodes_stand_side_by_side_with_their_cosine(page, camp_client):
    one, other = np.array(answered(camp_client, "/v1/embed", ids=["a4", "a6"])["embeddings"])
    cosine = float(one @ other / ((one @ one) * (other @ other)) ** 0.5)
    show(page, camp_client, "#node=a4&with=a6")
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("article h2")).to_have_text(["a4", "a6"])
    expect(page.locator("main")).to_contain_text(f"representations is {cosine:.3f}")
    left, right = (page.locator("article").nth(side).bounding_box() for side in (0, 1))
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]


def test_a_likely_link_is_explained_from_both_ends(page, like_client):
    show(page, like_client, "#node=0")
    page.get_by_label("Of type").select_option("knows")
    expect(page).to_have_url(re.compile("#node=0&links=knows$"))
    first = page.locator(".classes a").first
    expect(first).to_have_attribute("href", re.compile("type=knows"))
    target = first.inner_text()
    first.click()
    heading(page, f"0 – knows → {target}")
    pair = {"source": 0, "type": "knows", "target": int(target)}
    chance = answered(like_client, "/v1/links", pairs=[pair])["links"][0]["probability"]
    expect(page.locator(".answer")).to_contain_text(f"{100 * chance:.1f}%")
    expect(page.locator("article h2")).to_have_text(["0", target])
    expect(page.locator(".between a")).to_have_text(["likes", "knows"] * 2)


def test_a_link_is_explained_by_what_its_log_odds_add_up_from(page):
    trained = by_parts(dataset=with_prefix(likes(), f"{HOSTILE} "))
    ends = f"{HOSTILE} 0", f"{HOSTILE} 3"
    explained = trained.explain_link(ends[0], "knows", ends[1])
    with ready(LoadedModel(trained, "off")) as client:
        show(page, client, "#" + urlencode({"source": ends[0], "type": "knows", "target": ends[1]}))
        heading(page, f"{ends[0]} – knows → {ends[1]}")
        expect(page.locator(".answer")).to_contain_text(f"{100 * explained.answer.probability:.1f}%")
        expect(page.locator(".log-odds tbody tr")).to_have_count(len(explained.contributions))
        expect(page.locator(".log-odds tfoot")).to_contain_text(f"{abs(explained.answer.log_odds):.3f}")
        expect(page.locator(".walks li")).to_have_count(sum(len(path.walks) for path in explained.paths))
        expect(page.locator(".walks li a").first).to_have_text(ends[0])
        expect(page.locator("article h2")).to_have_text(list(ends))
        assert page.evaluate("window.harmed") is None


def test_a_node_of_a_model_without_neighbourhoods_has_no_picture_but_a_note(page, part_client):
    show(page, part_client, "#node=3")
    heading(page, "3")
    expect(page.locator(".unattended")).to_contain_text("scored by vectors and paths: no neighbourhoods are looked at.")
    expect(page.get_by_role("heading", name="Likely links")).to_be_visible()
    expect(page.get_by_role("heading", name="Nearest nodes")).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Contributions|Typed paths|Learned depth"))).to_have_count(0)
    expect(page.locator("figure")).to_have_count(0)


def test_a_link_is_asked_for_by_type_and_second_node(page, like_client):
    show(page, like_client, "#node=3")
    page.get_by_label("Action").select_option("likes")
    find(page, "From 3 to").fill("5")
    find(page, "From 3 to").press("Enter")
    heading(page, "3 – likes → 5")


def test_of_an_unknown_id_those_that_begin_alike_are_offered(page, camp_client):
    show(page, camp_client, "#node=a1x")
    expect(page.get_by_role("alert")).to_contain_text("No node has the id “a1x”")
    page.get_by_role("alert").get_by_role("link", name="a10").click()
    heading(page, "a10")


def test_of_two_nodes_the_unknown_one_is_named(page, camp_client):
    show(page, camp_client, "#node=a1&with=it's \\")
    expect(page.get_by_role("alert")).to_contain_text("No node has the id “it's \\”")


def test_a_search_that_finds_nothing_says_so(page, camp_client):
    show(page, camp_client)
    find(page, "Node").fill("nobody")
    expect(page.get_by_text("No id contains “nobody”")).to_be_visible()


def test_a_bad_address_is_told_apart_from_a_bad_server(page, like_client):
    show(page, like_client, "#source=0&type=hates&target=1")
    expect(page.get_by_role("alert")).to_contain_text("There is no type of link 'hates'")
    show(page, like_client, "#nonsense")
    expect(page.get_by_text("Search for a node by its id")).to_be_visible()


def test_a_server_that_cannot_be_reached_can_be_tried_again(page, camp_client):
    show(page, camp_client, "#node=a4")
    heading(page, "a4")
    page.route("**/v1/explain", lambda route: route.abort())
    show(page, camp_client, "#node=a5")
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    page.unroute("**/v1/explain")
    page.get_by_role("button", name="Try again").click()
    heading(page, "a5")


def test_a_busy_server_is_asked_again_when_it_says(page, camp_client):
    asked = []

    def answer(route):
        asked.append(route)
        busy = {"status": 429, "headers": {"retry-after": "1"}, "body": '{"code": "busy", "message": "later"}'}
        route.fulfill(**busy) if len(asked) < 3 else route.continue_()

    page.route("**/v1/explain", answer)
    show(page, camp_client, "#node=a5")
    expect(page.get_by_text("The server is busy; retrying in 1 s")).to_be_visible()
    heading(page, "a5")
    assert len(asked) == 3


def test_what_is_waited_for_is_said(page, camp_client):
    page.route("**/v1/explain", lambda route: None)
    show(page, camp_client, "#node=a5")
    expect(page.get_by_text("Loading the node …")).to_be_visible()


def test_a_token_is_asked_for_and_kept_in_the_tab_only(page, browser, camp_predictor):
    with ready(LoadedModel(camp_predictor, "off"), token=TOKEN) as client:
        show(page, client, "#node=a5")
        page.get_by_label("Token").fill("another one of tests")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("refused")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_label("Token").press("Enter")
        heading(page, "a5")
        expect(page.get_by_text("Nearest nodes")).to_have_count(0)
        page.reload()
        heading(page, "a5")
        assert page.evaluate("[Object.values(sessionStorage), localStorage.length, document.cookie]") == [[TOKEN], 0, ""]
        assert TOKEN not in page.url
        fresh = browser.new_page()
        fresh.goto(page.url)
        expect(fresh.get_by_text("This server requires a token")).to_be_visible()
        fresh.close()


def test_another_model_that_takes_the_place_of_the_first_is_noticed(page, camp_predictor, other_camp_predictor):
    with ready(LoadedModel(camp_predictor)) as client:
        show(page, client, "#node=a5")
        first, other = client.service.model, LoadedModel(other_camp_predictor)
        expect(page.locator("header")).to_contain_text(first.fingerprint[:12])
        client.service.model = other
        show(page, client, "#node=a6")
        expect(page.locator("header")).to_contain_text(other.fingerprint[:12])
        heading(page, "a6")


@pytest.fixture(scope="module")
def hostile_client():
    """Ids that would be harmful as HTML, too long for the page, or need care in an address."""
    own = camps()
    names = [HOSTILE, "x" * 300, "a&b=c#d%20+/?é…"] + [f"<b>{node}</b>" for node in range(3, own.graph.num_nodes)]
    dataset = with_ids(own, names, ("<i>even</i>", "javascript:odd"))
    with ready(LoadedModel(trained(classifier(dataset), dataset).predictor)) as client:
        yield client


def test_ids_and_classes_are_text_never_html(page, hostile_client):
    show(page, hostile_client)
    find(page, "Node").fill("<img")
    page.get_by_role("option", name=HOSTILE).click()
    heading(page, HOSTILE)
    expect(page.locator(".classes a")).to_have_count(2)
    expect(rows(page).get_by_role("link", name=re.compile("<b>")).first).to_be_visible()
    find(page, "Node").fill("<nobody onclick=x>")
    expect(page.get_by_text("No id contains “<nobody onclick=x>”")).to_be_visible()
    show(page, hostile_client, "#node=<script>window.harmed=1</script>")
    expect(page.get_by_role("alert")).to_contain_text("<script>window.harmed=1</script>")
    assert page.locator("main img, main b, main i, main script").count() == 0
    assert page.evaluate("window.harmed") is None
    assert page.locator("a").evaluate_all("links => links.every(link => link.getAttribute('href').startsWith('#'))")


def test_odd_ids_survive_the_address(page, hostile_client):
    show(page, hostile_client)
    find(page, "Node").fill("a&b")
    page.get_by_role("option").first.click()
    heading(page, "a&b=c#d%20+/?é…")
    page.reload()
    heading(page, "a&b=c#d%20+/?é…")


@pytest.mark.parametrize("view", ["#node=a4", "#node=a4&with=a5", ""])
def test_nothing_is_wider_than_a_phone(page, camp_client, view):
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, camp_client, view)
    expect(page.locator("main a").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_long_ids_fit_a_phone(page, hostile_client):
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, hostile_client, f"#node={'x' * 300}")
    heading(page, "x" * 300)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("scheme, dark", [("light", False), ("dark", True)])
def test_the_page_follows_light_and_dark(page, camp_client, scheme, dark):
    page.emulate_media(color_scheme=scheme)
    show(page, camp_client)
    red = int(re.findall(r"\d+", page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor"))[0])
    assert (red < 60) is dark


def test_the_map_shows_every_node_and_a_click_goes_to_one(page, camp_client):
    show(page, camp_client)
    legend = page.get_by_role("list", name="Colours: class").get_by_role("button")
    expect(legend).to_have_text(["even 15", "odd 15"])
    plane = page.locator(".plane svg")
    dots = plane.locator("path.dots").evaluate_all("paths => paths.map(path => path.getAttribute('d').match(/M/g).length)")
    assert dots == [15, 15]
    x, y = map(float, re.findall(r"[\d.]+", plane.locator("path.dots").first.get_attribute("d"))[:2])
    plane.hover(position={"x": x, "y": y})
    expect(page.locator(".map .told")).to_contain_text(re.compile(r"^a\d+: class even$"))
    named = page.locator(".map .told a").inner_text()
    plane.click(position={"x": x, "y": y})
    heading(page, named)
    page.go_back()
    legend.first.click()
    expect(plane.locator("path.dots.dim")).to_have_count(1)


def test_what_the_run_measured_is_shown_before_the_map_is_there(page, shop_folder):
    with ready(load_model(shop_folder, "cpu")) as client:
        page.route("**/v1/map", lambda route: route.fulfill(status=202, json={"model": "", "status": "computing"}))
        results = client.get("/v1/model").json()["results"]
        show(page, client)
        expect(page.locator(".results")).to_contain_text(f"{results['metrics']['test']['loss']:.4f}")
        expect(page.get_by_text("The map of all nodes is being computed")).to_be_visible()
        page.unroute("**/v1/map")
        expect(page.locator("path.dots").first).to_be_attached()


def test_a_server_without_a_map_says_why(page, camp_predictor):
    with ready(LoadedModel(camp_predictor, "off")) as client:
        show(page, client)
        expect(page.locator(".map")).to_contain_text("No map: this server was started with --neighbours off")


def test_a_node_shows_its_columns_its_true_class_and_split_and_its_edges(page, shop_client):
    known = answered(shop_client, "/v1/nodes/data", ids=["c3"])["nodes"][0]
    show(page, shop_client, "#node=c3")
    expect(page.locator(".fact").first).to_have_text("customer")
    expect(page.locator(".facts")).to_contain_text("true class y")
    trained_on = "the model was trained on this label" if known["split"] == "train" else f"{known['split']}: the model was not"
    expect(page.locator(".facts")).to_contain_text(trained_on)
    expect(page.locator(".columns td")).to_have_text(["age", "23", "town", "rome"])
    expect(page.locator(".edges tbody td")).to_have_text(["buys", "t3", "thing", "6"])
    page.locator(".edges a").click()
    heading(page, "t3")
    expect(page.locator(".facts")).to_contain_text("no class is known")
    marks = page.locator(".edges tbody .mark").all_text_contents()
    splits = [one["split"] for one in answered(shop_client, "/v1/nodes/data", ids=["c3", "c9"], top=0)["nodes"]]
    assert [mark.strip() for mark in marks] == ["●" if split == "train" else "○" for split in splits]


def test_links_that_were_trained_on_are_told_from_those_held_out(page, like_client):
    show(page, like_client, "#node=0")
    expect(page.locator(".edges tbody tr")).to_have_count(5)
    expect(page.locator(".edges tbody tr").first).to_have_text("likes ○ valid2")
    expect(page.locator(".edges .mark.trained")).to_have_count(4)


def test_a_row_of_two_steps_names_the_nodes_between(page, camp_client):
    found = answered(camp_client, "/v1/explain", id="a4")
    row = next(one for one in found["rows"][:10] if one["step"] == 2)
    asked = {"source": "a4", "target": row["neighbour"], "relations": row["relations"], "top": 3}
    walk = answered(camp_client, "/v1/between", **asked)["walks"][0]["nodes"]
    show(page, camp_client, "#node=a4")
    rows(page).get_by_role("link", name=row["neighbour"], exact=True).first.focus()
    expect(page.locator(".row-walks li").first.locator("a")).to_have_text(walk[1:])


def test_the_colours_of_paths_stand_beside_the_picture(page, camp_client):
    page.set_viewport_size({"width": 1400, "height": 900})
    show(page, camp_client, "#node=a4")
    key = page.get_by_role("list", name="Colours of paths")
    expect(key.get_by_role("listitem").first).to_have_text("itself")
    expect(page.locator(".drawing svg")).to_be_visible()  # it is drawn once its width is known
    drawing, beside = page.locator(".drawing").bounding_box(), key.bounding_box()
    assert drawing["x"] + drawing["width"] <= beside["x"] + 1 and beside["y"] < drawing["y"] + drawing["height"] / 2


def test_two_nodes_name_the_neighbours_that_they_share(page, camp_client):
    between = answered(camp_client, "/v1/between", source="a4", target="a6", top=20)
    show(page, camp_client, "#node=a4&with=a6")
    expect(page.locator(".shared-ids a")).to_have_text(between["shared_neighbours"])
    said = "shared neighbour" if between["num_shared_neighbours"] else "No node is a neighbour of both"
    expect(page.locator(".shared-ids")).to_contain_text(said)


def test_what_spread_labels_add_is_shown(page):
    dataset = camps()
    model = classifier(dataset, label_spreading=True)
    with ready(LoadedModel(trained(model, dataset).predictor, "off")) as client:
        spread = answered(client, "/v1/explain", id=12)["label_spreading"]
        show(page, client, "#node=12")
        numbers = [spread["without"], spread["effect"], spread["without"] + spread["effect"]]
        shown = [f"{value:+.3f}".replace("-", "−") if round(abs(value), 3) else "0.000" for value in numbers]
        expect(page.locator(".spreading .number")).to_have_text(shown)


def test_a_phone_is_not_told_to_point_and_its_labels_differ(page, hostile_client):
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, hostile_client)
    expect(page.get_by_text("Tap a dot to read its id")).to_be_visible()
    expect(page.get_by_text("Point at")).to_be_hidden()
    show(page, hostile_client, "#node=<b>4</b>")
    expect(page.get_by_text("Tap a dot to read its row")).to_be_visible()
    labels = page.locator(".dot text").all_text_contents()
    assert len(labels) > 3 and len(set(labels)) == len(labels)
