package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// BenchmarkHandler takes deliveries of 20 KB, the size of a pull_request event,
// over loopback and without the network's part.
func BenchmarkHandler(b *testing.B) {
	body := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("y"), 20_000)...), `"}`...)
	forget := func(h *webhook.Handler) {
		h.Log = nil
		h.Store = func(context.Context, webhook.Delivery) error { return nil }
	}
	b.Run("loopback", func(b *testing.B) {
		s := start(b, forget)
		b.SetBytes(int64(len(body)))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				resp, err := s.Client().Do(post(b, s.URL, body))
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusAccepted {
					b.Errorf("answered %d", resp.StatusCode)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	})
	b.Run("handler", func(b *testing.B) {
		h := &webhook.Handler{Secrets: [][]byte{secret}}
		forget(h)
		signature := webhook.Sign(secret, body)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-GitHub-Event", "push")
			r.Header.Set("X-GitHub-Delivery", id)
			r.Header.Set("X-Hub-Signature-256", signature)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusAccepted {
				b.Fatalf("answered %d", w.Code)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, event := range readExamples(b, sources(b)["api.github.com"]) {
		if event.Name != "pull_request" {
			continue
		}
		body := event.Examples[0]
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := webhook.Decode("pull_request", body); err != nil {
				b.Fatal(err)
			}
		}
	}
}
