"""The settings of the manual: `nox -s site` builds it."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
while not (ROOT / "uv.lock").is_file():  # the build reads a copy of this folder
    ROOT = ROOT.parent
sys.path.insert(0, str(ROOT / "tools" / "manual"))

project = "Bedrax"
author = "the Bedrax contributors"
project_copyright = author
version = release = tomllib.loads((ROOT / "packages/bedrax/pyproject.toml").read_text(encoding="utf-8"))["project"][
    "version"
]

extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton", "extension"]
exclude_patterns = ["pictures/**"]
suppress_warnings = ["misc.highlighting_failure"]  # shell sessions, and output that stands for anything

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 76
python_use_unqualified_type_names = True
copybutton_exclude = ".linenos, .gp, .go"
pygments_style = "default"

html_theme = "pydata_sphinx_theme"
html_title = "Bedrax"
html_static_path = ["static"]
html_css_files = ["manual.css"]
html_favicon = "static/bedrax.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Bedrax", "image_light": "static/bedrax.svg", "image_dark": "static/bedrax.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}
