#!lua flags=no-writes
-- check-tags: looks for entries of the index of tags whose job is over or has another header, a
-- page at a time.
-- USES  tombstone, tags, tag-entries
-- KEYS  1 jobs  2 tags
-- ARGV  1 limit  then per place: after
--       limit: entries per page; after: the entry looked at last, none = from the beginning
-- RETURN {1 = there are more, else 0; looked; the entry looked at last, or ''; then what is astray}
-- A page ends at 512 KiB of records, which are read for their headers alone.
local jobs, tags = KEYS[1], KEYS[2]
local limit, after = tonumber(ARGV[1]), ARGV[2]
local from = after and '(' .. after or '-'
local entries = redis.call('ZRANGE', tags, from, '+', 'BYLEX', 'LIMIT', 0, limit)
local found, bytes = { #entries == limit and 1 or 0, 0, after or '' }, 0
for _, entry in ipairs(entries) do
  local member = memberIn(entry)
  bytes = bytes + redis.call('HSTRLEN', jobs, member)
  if bytes > 524288 and found[2] > 0 then
    found[1] = 1
    break
  end
  if isAstray(entry, redis.call('HGET', jobs, member)) then
    found[#found + 1] = entry
  end
  found[2], found[3] = found[2] + 1, entry
end
return found
