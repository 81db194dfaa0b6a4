package fleet

import (
	"github.com/kernelgate/kernelgate/bot/fleet/protocol"
	"github.com/kernelgate/kernelgate/runners"
)

// goOn adds to a job's log what a beat tells of it. A beat that was sent twice changes nothing; one that begins behind the
// end, since the bot was started anew, is told so by the answer and adds nothing.
func goOn(said []runners.Said, from int, more []runners.Said) []runners.Said {
	known := len(said) - from // of what is told
	if from < 0 || known < 0 || known > len(more) || len(more) > protocol.MostSaid {
		return said
	}
	for _, s := range more[known:] {
		if len(said) < runners.MostSaid {
			s.Event = s.Event.Bounded()
			said = append(said, s) // whoever has the shorter log sees nothing of it
		}
	}
	return said
}

// Said is the log of a job that is at a runner, from its beginning.
func (s *Server) Said(job string) []runners.Said {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.seen {
		if job != "" && state.Job == job {
			return state.Said // what is in it never changes
		}
	}
	return nil
}
