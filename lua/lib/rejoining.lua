-- rejoining: a dead member of a set lives again.
-- GIVES   rejoin(keys, member, text): enters its tags, of which text is that of its header; it is
--         no longer counted as dead; setless(record): a record without the tag of its set, if any;
--         diedBefore(keys, record, at): whether its set began later than that ms
-- NEEDS   tags, sets
-- RULE    Who died before the set began was a member of an earlier one of this name: it is none of
--         this one, and loses the tag. The count comes last. A call that was cut off before it
--         finds the entry when it is made again, and counts nothing: the count may be one too high.
--         After the callback was made it is a job like any other.
local function rejoin(keys, member, text)
  local name = setIn(text)
  local set = name and setOf(keys, name)
  local isOpen = set and redis.call('ZSCORE', keys.tags, '=set:' .. name .. '\0' .. member)
  addTags(keys.tags, { { member = member, text = text } })
  if not set or isOpen or set.sealed == '2' then return end
  set.x = math.max(0, set.x - 1)
  keepSet(keys, name, set)
end

local function setless(record)
  return (record:gsub('^(1%w+)(;[^|]*)', function(asked, header)
    header = header:gsub(' set:[^,;]+,?', '', 1):gsub(',;', ';'):gsub(',$', '')
    return asked .. header:gsub(';t=;', ';'):gsub(';t=$', '')
  end, 1))
end

local function diedBefore(keys, record, at)
  local name = setIn(tagsOf(record) or '')
  local set = name and setOf(keys, name)
  return set and (tonumber(at) or math.huge) < tonumber(set.made)
end
