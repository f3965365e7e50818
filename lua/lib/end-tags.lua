-- end-tags: a job is over: its tags are taken out, and its set is told.
-- GIVES   endTags(keys, now, member, text, letter): text is that of its tags; letter: how it ended
-- NEEDS   tags, sets, callback
-- RULE    Called once the tombstone is written. Only a member that has its entry counts, and it is
--         counted before the entry goes: a call that was cut off in between counts it again when it
--         is repeated. So a count may be one too high, and never one too low.
local function endInSet(keys, now, member, text, letter)
  local name = setIn(text)
  local set = name and setOf(keys, name)
  if set and redis.call('ZSCORE', keys.tags, '=set:' .. name .. '\0' .. member) then
    set[letter] = set[letter] + 1
    keepSet(keys, name, set)
  end
  dropTags(keys.tags, member, text)
  if set then
    callBack(keys, now, name)
  end
end

local function endTags(keys, now, member, text, letter)
  if not (text and keys.tags and text:find(' set:', 1, true)) then
    dropTags(keys.tags, member, text)
    return
  end
  --@lazy
  endInSet(keys, now, member, text, letter)
end
