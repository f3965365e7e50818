-- giving-up: entries leave ready otherwise than by a completion, and whoever waits for the room
-- they leave is let through.
-- GIVES   giveUp(keys, state, now, micros, entries, members, unused, isOver): state is gates,
--         gate and paused of K:meta; unused: by entry, true where no handler has run, so that its
--         turns of the rate are given back; isOver: as leaveReady has it
-- NEEDS   gate, costs, pausing, leaving, letting-through
-- RULE    The bell rings in the same call, so that nobody has to notice the room.
local function giveUp(keys, state, now, micros, entries, members, unused, isOver)
  local gate, charges
  if state[1] then
    --@lazy
    gate = gateOf(state[1], state[2], now, micros)
    charges = chargesOf(keys.ready, gate, entries, members, unused)
  end
  if state[3] then
    --@lazy
    state[3] = pauseIn(state[3], state[1])
  end
  leaveReady(keys, gate, entries, members, isOver)
  if gate then
    --@lazy
    refundAll(keys, gate, charges)
    if not state[3] then
      -- @ring-bell
      ringBell(keys, gate)
    end
  end
end
