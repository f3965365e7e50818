#!lua flags=allow-oom
-- tend: sets that are sealed and have nobody left, as a call was cut off, get their callbacks.
-- USES  clock, tombstone, tags, digits, weight, nudge, sets, stray, callback
-- KEYS  1 leader  2 scheduled  3 jobs  4 meta  5 tags
-- ARGV  1 now  2 term  3 after  4 limit
--       now ms, '' = server time; term: the leader's; after: the set looked at last, '' = from the
--       beginning; limit: sets of a call
-- RETURN {sets that are over now, the set looked at last, '' = that was all}; {-1, ''} when the
--        term is not the leader's
-- An entry of the index whose member is over, or was never written, goes; the end that a tombstone
-- tells is counted, perhaps a second time. The first member that lives ends the look at a set, so a
-- large one costs no more than a small one; so do 200 entries that went.
local leader, scheduled, jobs, meta, tags = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, term, after, limit = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local keys = { scheduled = scheduled, jobs = jobs, meta = meta, tags = tags }
if redis.call('GET', leader) ~= term then return { -1, '' } end
local low = after == '' and '[=sets\0' or '(=sets\0' .. after
local listed = redis.call('ZRANGE', tags, low, '(=sets\1', 'BYLEX', 'LIMIT', 0, limit)

local function dropStray(name, set, entry)
  local letter = strayOf(keys, entry)
  if not letter then return false end
  if set[letter] then
    set[letter] = set[letter] + 1
    keepSet(keys, name, set)
  end
  redis.call('ZREM', tags, entry)
  return true
end

local over = 0
for _, entry in ipairs(listed) do
  local name, left, isStray = entry:sub(7), 200, true
  local set = setOf(keys, name)
  if not set then
    forgetSet(keys, name)
  elseif set.sealed ~= '0' then
    -- @many-strays
    while isStray and left > 0 do
      local first = set.sealed == '1' and hasOpen(tags, name)
      isStray, left = first and dropStray(name, set, first), left - 1
    end
    over = over + (callBack(keys, now, name) and 1 or 0)
  end
end
return { over, #listed == limit and listed[#listed]:sub(7) or '' }
