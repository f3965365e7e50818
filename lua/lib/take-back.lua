-- take-back: what is ready and was read by nobody is scheduled again.
-- GIVES   takeBack(keys, now, limit): the entries that are gone, their members, and what each has
--         used of a rate, see chargeIn
-- NEEDS   group, stale, tombstone, charge
-- RULE    What was read is left to who read it. A member that is scheduled already keeps its due
--         time there. A job that was cancelled meanwhile is not scheduled: its tombstone waited for
--         its entry, and enters done.
local function takeBack(keys, now, limit)
  local entries, members, charges = {}, {}, {}
  -- @nothing-ready
  if redis.call('XLEN', keys.ready) == 0 then return entries, members, charges end
  local group = groupOf(keys.ready)
  local from = group and '(' .. group.delivered or '-'
  for _, entry in ipairs(redis.call('XRANGE', keys.ready, from, '+', 'COUNT', limit)) do
    local member, due = entry[2][2], ('%.0f'):format(tonumber(entry[2][4]) or now)
    local isOver = tombstoneOf(keys.jobs, member)
    if isOver then
      redis.call('ZADD', keys.done, 'NX', now, member)
    end
    -- @is-back
    local isBack = not isOver and redis.call('ZADD', keys.scheduled, 'NX', due, member) == 1
    redis.call('XDEL', keys.ready, entry[1])
    entries[#entries + 1], members[#members + 1] = entry[1], member
    charges[#charges + 1] = chargeIn(entry[1], entry[2])
    charges[#charges].member = member
    if not isBack then
      dropNote(keys.stale, member)
    end
  end
  return entries, members, charges
end
