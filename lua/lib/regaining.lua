-- regaining: a job that lives again has its group as before, if its dead letter held it.
-- GIVES   regain(order, deadLetter, member): first, it has its group; last, its group has gone on
--         without it; nothing where it has no group
-- NEEDS   line
-- RULE    Before the dead letter goes. A call that was cut off finds the job in its place.
local function regain(order, deadLetter, member)
  local group = groupIn(member)
  if group == '' then return nil end
  local held = redis.call('HGET', order, group)
  if held == '!' .. deadLetter .. ' ' .. member then
    redis.call('HSET', order, group, member)
    return 'first'
  end
  return held == member and 'first' or 'last'
end
