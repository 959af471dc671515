"""The reference page of the API renders and sends requests under the content security policy."""

from playwright.sync_api import expect

from server.browser.conftest import Live, Windows


def test_a_request_can_be_tried_on_the_reference_page(closed_server: Live, windows: Windows) -> None:
    page = windows(closed_server).tab("/api")
    page.get_by_role("button", name="Authorize").first.click()
    page.get_by_label("auth-bearer-value").fill(closed_server.tokens["viewer"])
    page.get_by_label("Apply credentials").click()
    page.get_by_role("button", name="Close").click()
    operation = page.locator("#operations-store-me")
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(operation.locator(".live-responses-table")).to_contain_text("the-viewer")
