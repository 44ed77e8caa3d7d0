"""Can the paper's results be reproduced?"""

from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin
from pages.widgets.paper import (
    answer,
    deviations,
    evidence,
    figure1,
    table1,
    table2,
    times,
)

# The sections of the page, in this order: each is a module with `show()`.
SECTIONS = (answer, table1, table2, figure1, times, evidence, deviations)

begin("Can the paper's results be reproduced?", answer.question())
for section in SECTIONS:
    section.show()
close_link()
