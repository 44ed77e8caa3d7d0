"""Does it hold up?"""

from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin
from pages.widgets.paper import deviations, evidence, figure1, table1, times
from pages.widgets.paper.tables import ARXIV

# What the page shows, in this order: a new section is a module with `show()`, and its name here.
SECTIONS = (table1, figure1, times, evidence, deviations)

begin(
    "Does it hold up?",
    f"In 2020 Cicala and Bortolussi proposed [layers that learn where to look]({ARXIV}). Here is "
    "their Table 1, each model trained several times from scratch, next to the published "
    "error. Lower (further left) is better.",
)
for section in SECTIONS:
    section.show()
close_link()
