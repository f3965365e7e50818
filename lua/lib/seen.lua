-- seen: whether a job is still what somebody saw who read it, for changes that hold only then.
-- GIVES   seenText(record, run, waits): the digest of its record or -, the token of its last start,
--         and where it is: its due time, also while it waits in line or is held by a worker, ready
--         or running
-- NEEDS   tombstone, line
-- RULE    Whatever changes a job changes one of them: an edit the digest, a start the token, a
--         reschedule the due time.
local function seenText(record, run, waits)
  local started = run and run.owner ~= '-' and (tonumber(run.due) and run.due or 'running')
  local place = started or dueText(waits) or 'ready'
  local digest = record and not isTombstone(record) and digestOf(record) or '-'
  return digest .. ' ' .. (run and run.token or '0') .. ' ' .. place
end
