"""A page of ordinary English, for prompts of which only the length is given.

Owns: the text. Must not know: tokens, models. Written for batchviz; nothing is quoted.
"""

SENTENCES = (
    "The bakery on the corner opens at six, when the street is still dark and the trams are empty.",
    "A nurse who works nights buys two rolls there every morning and eats one of them on the way home.",
    "In spring the river rises by about a metre, and the rowing club carries its boats up to the road.",
    "My grandmother kept a notebook in which she wrote down the weather, the price of eggs and who had called.",
    "To repair a bicycle chain you need a small tool, a little patience and a rag for your hands.",
    "The committee met for three hours and agreed on nothing except the date of the next meeting.",
    "Bees tell each other where the flowers are by dancing, and the angle of the dance stands for the sun.",
    "When the lights went out, somebody in the back row began to sing, and after a while everyone joined in.",
    "Copper turns green because it reacts with the air, slowly, over many years, and the green layer protects it.",
    "The train to the coast takes four hours, crosses eleven bridges and stops wherever a passenger waves.",
    "He planted the beans too early, lost them to a late frost, and planted them again without complaint.",
    "A good map leaves out almost everything, and what it keeps is in the right place.",
    "The library lends seeds as well as books, and in autumn people bring back more than they took.",
    "She learned to swim at fifty, in a lake so cold that the ducks looked surprised.",
    "If you knead the dough for ten minutes it becomes smooth, and if you forget it overnight it becomes bread.",
    "The lighthouse has had no keeper since the seventies, but someone still paints the door.",
    "Every summer the children built a dam across the brook, and every autumn the brook took it away.",
    "An old clock that is wrong by the same amount each day is more useful than one that is right by chance.",
    "The museum shows a boat that was carved from a single oak two thousand years ago and never finished.",
    "Nobody remembers who put the piano in the waiting room, but it is tuned, and people play it.",
)
