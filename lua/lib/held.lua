-- held: a job that was started before it was due, and that its worker holds until then.
-- GIVES   isAhead(meta, run, now): whether a run is held; then its worker is told to let it go, and
--         the caller is to ask again: the job waits in scheduled then, or it has begun
-- NEEDS   stop-order
-- RULE    A run with an owner and a due time is held until that time. No worker holds one for
--         longer than ten seconds: where the clock went back by more, the job counts as running.
local function isAhead(meta, run, now)
  local due = run and run.owner ~= '-' and tonumber(run.due)
  local holds = due and due > now and due <= now + 10000
  if holds then
    orderStop(meta, run, 'let-go ')
  end
  return holds
end
