package fleet

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/fleet/protocol"
)

// speaks is the protocol of whoever asks: those who name none are from before there were numbers.
func speaks(ask protocol.LeaseRequest) int { return max(ask.Protocol, 1) }

// understood refuses a runner that the bot cannot work with. The answer is one that every runner takes for final.
func (s *Server) understood(ask protocol.LeaseRequest) error {
	oldest := cmp.Or(s.Oldest, protocol.Oldest)
	own, p := cmp.Or(s.Version, "the bot's version"), speaks(ask)
	switch {
	case p < oldest:
		return refuse(http.StatusForbidden, "%s is too old for this bot: it speaks version %d of the runners' protocol, and the bot needs %d or newer. Install %s on the runner's host and start the runner again",
			cmp.Or(ask.Version, "the runner's program"), p, oldest, own)
	case p > protocol.Version:
		return refuse(http.StatusForbidden, "%s is newer than this bot: it speaks version %d of the runners' protocol, and the bot knows %d. Update the bot first, or install %s on the runner's host",
			cmp.Or(ask.Version, "the runner's program"), p, protocol.Version, own)
	}
	return nil
}

// outdated says what an operator should know of a runner's version; "" where there is nothing.
func (s *Server) outdated(ask protocol.LeaseRequest) string {
	switch p := speaks(ask); {
	case p < protocol.Version:
		return fmt.Sprintf("old: speaks version %d of the protocol, the bot %d (install %s)", p, protocol.Version, cmp.Or(s.Version, "the bot's version"))
	case s.Version != "" && ask.Version != "" && ask.Version != s.Version:
		return fmt.Sprintf("runs %s, the bot %s", ask.Version, s.Version)
	}
	return ""
}
