"""Vocabulary of the texts of the demonstration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """Phrases about one topic: subjects, events and measures."""

    subjects: tuple[str, ...]
    events: tuple[str, ...]
    measures: tuple[str, ...]


TOPICS: Mapping[str, Topic] = {
    "floods": Topic(
        ("The river at the north gauge", "The lower meadow", "The harbour basin", "The old mill channel"),
        ("rose forty centimetres overnight", "stood under water for three days", "flooded after the spring tide",
         "overflowed when the snow melted"),
        ("we moved the pumps to the east quay", "the warning went out two hours late", "the sandbags held",
         "the gauge has to be set higher"),
    ),
    "birds": Topic(
        ("A pair of marsh harriers", "The tern colony", "Some two hundred barnacle geese", "The reed warblers"),
        ("came back a week early", "nested on the outer dyke", "left the island during the storm",
         "raised only half as many young as last year"),
        ("the hide should be closed until July", "we ringed eleven of them", "foxes are the likely cause",
         "the count will be repeated at dawn"),
    ),
    "fish": Topic(
        ("Sea trout", "Young eels", "The smelt run", "Sticklebacks in the ditches"),
        ("passed the ladder in large numbers", "were caught below the weir", "spawned on the gravel bank",
         "died in the warm water of August"),
        ("the ladder must be cleared of driftwood", "we released all but six", "oxygen was measured twice a day",
         "anglers were asked to stay away"),
    ),
    "water quality": Topic(
        ("Nitrate in the western ditch", "The water of the bathing pond", "Salinity at the sluice",
         "The well behind the barn"),
        ("went above the limit twice", "turned green with algae", "dropped to its lowest value since records began",
         "smelled of sulphur after the rain"),
        ("samples went to the laboratory", "the farm upstream was told", "the probe needs a new membrane",
         "we closed it for a week"),
    ),
    "instruments": Topic(
        ("The pressure sensor on pole four", "The tide gauge", "The weather mast", "The acoustic current meter"),
        ("drifted by two millibar", "stopped after a lightning strike", "was covered in barnacles",
         "lost its clock when the battery ran out"),
        ("it was calibrated against the spare", "a diver cleaned it", "the data of March are not to be used",
         "we ordered a new cable"),
    ),
    "boats": Topic(
        ("The flat-bottomed ferry", "The survey launch", "The small dinghy", "The research barge"),
        ("ran aground on the new sandbank", "needed an engine repair", "was late by an hour in the fog",
         "carried twelve visitors to the island"),
        ("the channel has to be marked again", "the propeller was replaced", "the timetable is now printed larger",
         "life jackets were counted"),
    ),
    "archive": Topic(
        ("A box of glass negatives", "The station diary of 1911", "A hand-drawn map of the delta",
         "The oldest tide tables"),
        ("turned up behind the boiler", "mention a storm nobody remembers", "were scanned page by page",
         "suffered from damp in the cellar"),
        ("they are kept dry now", "the handwriting took a month to read", "copies went to the town library",
         "dates were compared with the church register"),
    ),
    "plants": Topic(
        ("Sea lavender on the salt meadow", "The invasive cordgrass", "Black alder along the canal", "Glasswort"),
        ("spread by thirty metres", "flowered in the second week of June", "died back where cattle grazed",
         "returned on the closed path"),
        ("the fence was moved", "volunteers pulled out two barrow loads", "plots are photographed every month",
         "seeds were kept for the garden"),
    ),
    "sediment": Topic(
        ("The sandbank off the point", "Mud in the turning basin", "The core from the reed bed", "The eroding bank"),
        ("grew by half a hectare", "reached the depth of the ferry's keel", "showed a layer of ash",
         "lost a metre to the January storm"),
        ("dredging is asked for in autumn", "the layer was dated", "willow stakes were driven in",
         "the survey lines will be run again"),
    ),
    "visitors": Topic(
        ("A school class from the town", "The guided walk", "The open day", "Two reporters"),
        ("asked about the seals", "drew more people than the boats can carry", "lost their way in the reeds",
         "stayed until the lamps were lit"),
        ("signs were put up in three languages", "the walk starts at low tide from now on", "we need another guide",
         "a leaflet was written"),
    ),
    "storms": Topic(
        ("The October gale", "The first winter storm", "A squall from the south-west", "The night of the surge"),
        ("took the roof off the boathouse", "broke the mooring of the barge", "cut the power for nine hours",
         "pushed salt water over the inner dyke"),
        ("the generator started by itself", "ropes were doubled", "insurance has been informed",
         "nobody was hurt"),
    ),
    "climate": Topic(
        ("The summer mean", "The number of frost days", "Evaporation over the flats", "The ice on the canal"),
        ("was the highest in the series", "fell for the fifth year in a row", "exceeded rainfall in every month",
         "did not bear a person all winter"),
        ("the series goes back to 1902", "a homogeneity test was run", "the figures were sent to the weather service",
         "the old thermometer was kept running beside the new one"),
    ),
}  # fmt: skip

FIRST_NAMES = (
    "Ana", "Bo", "Cleo", "Dov", "Edda", "Finn", "Greta", "Hanno", "Ida", "Jost", "Kaja", "Levin", "Maren", "Nils",
    "Ottla", "Pia", "Quirin", "Ruta", "Sven", "Tilda", "Uwe", "Vera", "Wim", "Xenia", "Yuna",
)  # fmt: skip
LAST_NAMES = (
    "Abt", "Brink", "Cordes", "Dierks", "Ebel", "Friis", "Gerdes", "Hoek", "Ihnen", "Jansen", "Kolk", "Luers", "Meents",
)  # fmt: skip
TEAMS = {
    "Hydrology": "Gauges, tides and floods.",
    "Birds": "Counts, nests and ringing.",
    "Boats": "Ferries, launches and the harbour.",
    "Archive": "Diaries, maps and photographs.",
    "Laboratory": "Water, soil and everything that is measured.",
    "Outreach": "Walks, schools and the open day.",
}
PROJECT_WORDS = (
    ("River", "Dyke", "Harbour", "Salt meadow", "Reed", "Tide", "Island", "Delta"),
    ("atlas", "watch", "survey", "census", "logbook", "restoration", "forecast", "inventory"),
)
ROLES = ("scientist", "technician", "boatman", "archivist")
STATUSES = ("idea", "active", "active", "active", "paused", "done")
PLACES = (
    "the north gauge", "the old sluice", "pole seven", "the ferry steps", "the salt meadow", "the inner dyke",
    "the reed bed", "the boathouse", "the island", "the mill channel", "the outer harbour", "the bird hide",
)  # fmt: skip
REMARKS = (
    "It took {n} of us until noon.", "Seen from {place}.", "Photographs {n} to {m} show it.",
    "The log has {n} entries about it.", "To be looked at again near {place}.", "About {m} metres from {place}.",
    "The last time was {n} years ago.",
)  # fmt: skip
WHEN = (
    "In the morning",
    "At low tide",
    "Towards evening",
    "After the meeting",
    "On the second day",
    "Before the survey",
)
