-- rejoining: a dead member of a set lives again.
-- GIVES   rejoin(keys, member, text): enters its tags, of which text is that of its header; it is
--         no longer counted as dead
-- NEEDS   tags, sets
-- RULE    The count comes last. A call that was cut off before it finds the entry when it is made
--         again, and counts nothing: the count may be one too high. After the callback was made it
--         is a job like any other.
local function rejoin(keys, member, text)
  local name = setIn(text)
  local set = name and setOf(keys, name)
  local isOpen = set and redis.call('ZSCORE', keys.tags, '=set:' .. name .. '\0' .. member)
  addTags(keys.tags, { { member = member, text = text } })
  if not set or isOpen or set.sealed == '2' then return end
  set.x = math.max(0, set.x - 1)
  keepSet(keys, name, set)
end
