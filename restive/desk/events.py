"""The kinds of events of a program's log, and the arrays that each carries; agents enter by their numbers only.

created    the config
joined     number, group                         agents that appear for the first time
grouped    number, group                         agents that are in another group from now on
left       number                                agents that are there no more
opened     number, state, kept                   a round: who is there in which state, kept from earlier or new; budget
decided    number, chosen, probability, bar           (and the shadow's) over the agents of `opened`; and the list
outcomes   number, done, reward, after           what happened; after −1: so far only whether the action was done;
           known, advised                        whether that was known before, and whether it was on the list
corrected  as `opened` or `outcomes`             what an earlier record should have said
cancelled  a round that was decided by mistake       nobody acts by its list
erased     number                                agents whose names are gone
changed    settings
"""

CREATED, JOINED, GROUPED, LEFT, OPENED, DECIDED = "created", "joined", "grouped", "left", "opened", "decided"
OUTCOMES, CORRECTED, CANCELLED, ERASED, CHANGED = "outcomes", "corrected", "cancelled", "erased", "changed"
