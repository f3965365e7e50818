-- repeated: a completion whose job does not run any more.
-- GIVES   completedBefore(keys, call, entry, member, token, isSame): what it is answered; isSame:
--         this very call has completed it with this token
-- NEEDS   tombstone, leaving, stale
-- RULE    Who completed the job is told so however often it asks. Where the entry was held as a
--         proof of that, a call without hold lets it go.
local function completedBefore(keys, call, entry, member, token, isSame)
  local outcome, settled = settledIn(keys.jobs, member)
  if not isSame and settled ~= token then return 'gone' end
  local reply = ({ c = 'cancelled', d = 'already' })[outcome or 'd'] or 'gone'
  if reply ~= 'already' or not settled or call.isHeld then return reply end
  local held = redis.call('XRANGE', keys.ready, entry, entry)[1]
  if held and held[2][2] == member then
    if call.window > 0 then
      redis.call('ZADD', keys.done, call.now, member)
    else
      redis.call('ZREM', keys.done, member)
      redis.call('HDEL', keys.jobs, member)
    end
    leaveReady(keys, call.gate, { entry }, { member })
    dropNote(keys.stale, member)
  end
  return reply
end
