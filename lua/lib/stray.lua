-- stray: entries of sets in the index whose members do not live.
-- GIVES   strayOf(keys, entry): nil for a member that lives, else how it ended: the letter of its
--         tombstone, or '' where nothing is known of it
-- NEEDS   tombstone
-- RULE    A call that was cut off leaves them. A record is longer than any tombstone.
local function strayOf(keys, entry)
  local member = entry:match('%z(.*)$')
  local length = redis.call('HSTRLEN', keys.jobs, member)
  -- @any-text
  local text = length > 0 and length <= 300 and redis.call('HGET', keys.jobs, member)
  if length > 0 and not isTombstone(text) then return nil end
  return text and text:sub(2, 2) or ''
end
