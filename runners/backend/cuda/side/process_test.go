package side

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
)

// answering returns a side that gives the answers in turn, one per request.
func answering(t *testing.T, answers ...answer) *Process {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, maxPacket)
		for _, a := range answers {
			if _, err := receive(pair[1], buffer, &request{}); err != nil {
				return
			}
			if err := send(pair[1], a, nil); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		unix.Shutdown(pair[0], unix.SHUT_RDWR)
		<-done
		unix.Close(pair[0])
		unix.Close(pair[1])
	})
	return &Process{Who: "candidate", socket: pair[0], buffer: make([]byte, maxPacket)}
}

// TestTell checks that pending answers are received before the next one, in their order.
func TestTell(t *testing.T) {
	var answers []answer
	for i := range int64(20) {
		answers = append(answers, answer{Nanos: i})
	}
	p := answering(t, answers...)
	var heard []int64
	for _, told := range []int{0, 3, 1, 9} {
		for range told {
			if err := p.send(request{Ready: &ready{}}); err != nil {
				t.Fatal(err)
			}
			if err := p.settle(maxOwed); err != nil || p.owed > maxOwed {
				t.Fatalf("%d answers are owed: %v", p.owed, err)
			}
		}
		a, err := p.ask(request{Run: &run{}})
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, a.Nanos)
	}
	if want := []int64{0, 4, 6, 16}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}

// TestTellFails checks that a failure in a pending answer is reported at the next request, and that
// the side then gets no more requests.
func TestTellFails(t *testing.T) {
	p := answering(t, answer{}, answer{Failure: &gates.Failure{Kind: gates.FailureCrash, Detail: "it crashed"}}, answer{})
	for range 3 {
		if err := p.send(request{Ready: &ready{}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, err := p.ask(request{Run: &run{}})
		if failed, ok := errors.AsType[*Failure](err); !ok || failed.Kind != gates.FailureCrash {
			t.Errorf("got %v, want the side's failure", err)
		}
	}
}
