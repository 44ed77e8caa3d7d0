"""Can the paper's results be reproduced?"""

from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin
from pages.widgets.paper import deviations, evidence, figure1, table1, times
from pages.widgets.paper.tables import ARXIV

# The sections of the page, in this order: each is a module with `show()`.
SECTIONS = (table1, figure1, times, evidence, deviations)

begin(
    "Can the paper's results be reproduced?",
    f"In 2020 Cicala and Bortolussi proposed [layers that learn where to look]({ARXIV}). Here is "
    "their Table 1, each model trained several times from scratch, next to the published "
    "error. Lower (further left) is better.",
)
for section in SECTIONS:
    section.show()
close_link()
