-- yielding: who is over has its group no longer, or its dead letter holds the group.
-- GIVES   yieldAll(keys, members, isOver): members whose entries leave ready; isOver is true, or
--         ask: only those go whose jobs do not live; holdGroup(keys, share, member, deadLetter):
--         where dead letters hold groups, this one does that of its keeper
-- NEEDS   line, gate, keeping
-- RULE    A run with newer data is over too, as its next life may be due in a month. The dead
--         letter takes the group while its job still runs: a call that is cut off after that does
--         the same again.
local function yieldAll(keys, members, isOver)
  local groups, asked, gone = {}, {}, {}
  for _, member in ipairs(members) do
    local group = groupIn(member)
    if group ~= '' then
      groups[#groups + 1], asked[#asked + 1] = group, member
    end
  end
  if #groups == 0 then return end
  for nth, value in ipairs(redis.call('HMGET', keys.order, unpack(groups))) do
    if value == asked[nth] and (isOver == true or not livesIn(keys.jobs, value)) then
      gone[#gone + 1] = groups[nth]
    end
  end
  if #gone > 0 then
    redis.call('HDEL', keys.order, unpack(gone))
  end
end

local function holdGroup(keys, share, member, deadLetter)
  local group = groupIn(member)
  if lettersIn(share) ~= 'sh' or deadLetter == '-' then return end
  if redis.call('HGET', keys.order, group) ~= member then return end
  redis.call('HSET', keys.order, group, '!' .. deadLetter .. ' ' .. member)
end
