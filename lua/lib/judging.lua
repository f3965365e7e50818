-- judging: what a call of schedule is answered for one job, before anything is written.
-- GIVES   judgeJob(keys, call, member, record, due): as knownAs gives it. `call` has, besides what
--         knownAs asks for, horizon, bytes, and debouncedAs as debounced, where its mode is that
-- NEEDS   known
-- RULE    A job whose id nobody knows costs one look.
local function judgeJob(keys, call, member, record, due)
  local isInstant = due and (due == 0 or due >= 1e11) and due <= call.now + call.horizon
  if not isInstant then return ('bad-due %.0f'):format(call.now) end
  local isDots = member:find('^j:%.%.?$')
  if not member:find('^j:[!-~]+$') or isDots or #member > 200 then return 'bad-member' end
  -- @record-version
  if not record:find('^1[0-9a-z]+[;|]') then return 'bad-record' end
  if #record > call.bytes then return 'too-large' end
  local length = redis.call('HSTRLEN', keys.jobs, member)
  if length == 0 and not call.debounced then return 'ok' end
  local job = { member = member, record = record, length = length, due = due }
  if not call.debounced then return knownAs(keys, call, job) end
  -- @due-now
  job.due = due > 0 and due or call.now
  return call.debounced(keys, call, job)
end
