-- callback: the one job that a set leads to, made when the last member is over.
-- GIVES   callBack(keys, now, name): makes it if the set is sealed and nobody is left; whether the
--         set is over
-- NEEDS   sets, tags, tombstone, digits, weight, nudge
-- RULE    Due now, or as much later as the set says. The zset comes first and then its tags, as in
--         schedule. One HSET writes its record and that it has been made: whoever finds the set
--         after a cut makes no other. A live job of its id stays, and the set waits for its end. No
--         limit of the queue refuses it. The channel of the leader is named after meta, so that no
--         script that ends jobs has a key more.
local function callBack(keys, now, name)
  local set = setOf(keys, name)
  if not set or set.sealed == '0' then return false end
  if set.sealed == '1' then
    if hasOpen(keys.tags, name) then return false end
    local text = redis.call('HGET', keys.jobs, '\0then\0' .. name) or ''
    local delay, member, rest = text:match('^%.(%d+) (%S+) 1%w+([;|].*)$')
    local before = member and redis.call('HGET', keys.jobs, member)
    if not member or before and not isTombstone(before) then return false end
    local due = now + delay
    local head = ('1%s;n=%s.%s.%s.%s.%s'):format(base36(due), set.d, set.x, set.c, set.e, name)
    local record = head .. rest
    redis.call('ZADD', keys.scheduled, ('%.0f'):format(due), member)
    addTags(keys.tags, { { member = member, text = tagsOf(record) } })
    set.sealed = '2'
    keepSet(keys, name, set, member, record)
    redis.call('HINCRBY', keys.meta, 'n.scheduled', 1)
    reweigh(keys.meta, #record, 1)
    local wake = keys.meta:sub(1, -5) .. 'wake'
    nudge(keys.meta, wake, due)
  end
  forgetSet(keys, name)
  return true
end
