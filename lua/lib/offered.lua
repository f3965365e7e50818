-- offered: whether an entry of ready was added before its job was due.
-- GIVES   offerOf(entry, due, score): 'open' if it was, and its job is still in scheduled with that
--         due time | 'void' if it was and its job is not | nil
-- RULE    An offer is a hint: its job stays in scheduled, where all look for a job that waits, and
--         only a start takes it out of there. So an offer that nobody takes does no harm, and a
--         worker of 0.2.0, which would begin at once, drops it, because its job is in scheduled.
--         The id of an entry begins with the time of Redis, so an offer is older than its due time.
local function offerOf(entry, due, score)
  local atMs, dueMs = tonumber(entry:match('^%d+')), tonumber(due)
  if not (atMs and dueMs and atMs < dueMs) then return nil end
  return score and tonumber(score) == dueMs and 'open' or 'void'
end
