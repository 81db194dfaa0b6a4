package pages

import (
	"context"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// visitors simulates people who visit the pages, and counts the requests to GitHub about them.
type visitors struct {
	*Guard
	asked int
	now   time.Time
}

func newVisitors() *visitors {
	v := &visitors{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	v.Guard = &Guard{Key: []byte("k"), OAuth: &oauth2.Config{}, Now: func() time.Time { return v.now }, CanRead: func(_ context.Context, repo ledger.RepoName, user User) (bool, error) {
		v.asked++
		return strings.HasPrefix(user.Login, "member") && repo.ID%10 != 9, nil
	}}
	return v
}

// look simulates a page view that covers a number of repositories, and returns how many the visitor
// may read.
func (v *visitors) look(t *testing.T, login string, repos int) (may int) {
	t.Helper()
	w := httptest.NewRecorder()
	if err := v.give(w, "session", session{Login: login, ID: int64(crc32.ChecksumIEEE([]byte(login))), Until: v.now.Add(24 * time.Hour).Unix()}, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range w.Result().Cookies() {
		r.AddCookie(c)
	}
	viewer := v.Viewer(r)
	for repo := range repos {
		if viewer.MayRead(t.Context(), ledger.RepoName{ID: int64(repo), Name: "org/private"}) {
			may++
		}
	}
	return may
}

// TestStrangersSpendLittle checks that strangers can spend only a part of the bot's requests to
// GitHub, however many come and however often, and that members still get in.
func TestStrangersSpendLittle(t *testing.T) {
	v := newVisitors()
	for minute := range 60 {
		for stranger := range 100 {
			v.look(t, fmt.Sprint("stranger", stranger), 100)
		}
		if minute == 0 && v.asked > mostOfStrangers {
			t.Fatalf("strangers had GitHub asked %d times in a minute", v.asked)
		}
		v.now = v.now.Add(time.Minute - time.Second/2)
	}
	if v.asked > mostOfStrangers {
		t.Errorf("strangers had GitHub asked %d times in an hour", v.asked)
	}
	v.now = v.now.Add(window)
	before := v.asked
	v.look(t, "stranger1", 300)
	if n := v.asked - before; n != mostOfAStranger {
		t.Errorf("one stranger had GitHub asked %d times", n)
	}
	if may := v.look(t, "member", 100); may != 90 {
		t.Errorf("a member may read %d of 90", may)
	}
}

// TestMembersAreAskedAboutAgain checks that a member's rights are checked again every minute,
// missing rights less often, and that there is a limit for all visitors together.
func TestMembersAreAskedAboutAgain(t *testing.T) {
	v := newVisitors()
	for _, c := range []struct {
		after time.Duration
		asked int
	}{{0, 10}, {30 * time.Second, 0}, {time.Minute, 9}, {11 * time.Minute, 10}} {
		v.now = v.now.Add(c.after)
		before := v.asked
		if may := v.look(t, "member", 10); may != 9 || v.asked-before != c.asked {
			t.Errorf("after %v a member may read %d of 9, and GitHub was asked %d times, want %d", c.after, may, v.asked-before, c.asked)
		}
	}
	v = newVisitors()
	for member := range 20 {
		for range 10 {
			v.look(t, fmt.Sprint("member", member), 100)
			v.now = v.now.Add(time.Minute)
		}
		v.now = v.now.Add(-10 * time.Minute)
	}
	if v.asked > mostQuestions {
		t.Errorf("all together had GitHub asked %d times", v.asked)
	}
}
