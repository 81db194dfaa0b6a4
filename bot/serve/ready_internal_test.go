package serve

import (
	"testing"
	"time"
)

// TestRefusalIsNoticedInAMinute checks that a key that is revoked at the worst moment makes the bot unready within a minute,
// and that a key that is accepted again makes it ready as fast. The embedded GitHub of TestKeyIsRevokedLater shows that two
// refusals are enough.
func TestRefusalIsNoticedInAMinute(t *testing.T) {
	const answers = 5 * time.Second // on a bad day
	if revoked := askIn(askEvery, 0) + askIn(askEvery, 1) + 2*answers; revoked > time.Minute {
		t.Errorf("a revoked key is noticed after %v", revoked)
	}
	if accepted := askIn(askEvery, 2) + answers; accepted > time.Minute {
		t.Errorf("an accepted key is noticed after %v", accepted)
	}
	if brief := 20 * time.Millisecond; askIn(brief, 1) != brief {
		t.Error("a refusal makes the bot ask more rarely")
	}
}
