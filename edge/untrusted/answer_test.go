package untrusted

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// All answers together have a bound, and no more is read than that.
func TestAnswers(t *testing.T) {
	block := make([]byte, 1<<16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for err := error(nil); err == nil; {
			if _, err = w.Write(block); r.URL.Path == "/short" {
				return
			}
		}
	}))
	defer s.Close()
	client := &http.Client{Transport: Answers(1 << 20)(http.DefaultTransport)}
	read := func(path string) (int, error) {
		reply, err := client.Get(s.URL + path)
		if err != nil {
			return 0, err
		}
		defer reply.Body.Close()
		data, err := io.ReadAll(reply.Body)
		return len(data), err
	}
	if n, err := read("/short"); n != len(block) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := read("/endless"); n > 1<<20-len(block) || err == nil || err.Error() != "is longer than 1 MiB" {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := read("/short"); n != 0 || err == nil {
		t.Errorf("after the bound: %d bytes, %v", n, err)
	}
}
