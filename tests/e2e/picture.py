"""`make picture`: the README's picture, taken from the running page."""

from __future__ import annotations

import io
import shutil

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from tests.e2e.app_server import ROOT, app_server
from tests.e2e.conftest import FLAGS

PICTURE = ROOT / "assets" / "picture.png"
STEP = 34  # three answers withheld on the left, five delivered on the right


def main() -> None:
    """Opens the page, goes to the step, takes the part from the telling line to the maps."""
    with app_server() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, device_scale_factor=1.5)
        page.goto(server.url)
        page.get_by_role("button", name="Pause").click()
        page.locator(".scrub").fill(str(STEP))
        expect(page.locator('[data-part="where"]')).to_have_text(f"Step {STEP}")
        page.wait_for_timeout(1000)  # chips have slid into place
        shot = Image.open(io.BytesIO(page.locator(".batchviz").screenshot()))
        shot.convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT).save(PICTURE, optimize=True)
        browser.close()
    print(PICTURE, PICTURE.stat().st_size)


if __name__ == "__main__":
    main()
