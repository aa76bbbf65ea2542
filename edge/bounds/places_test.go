package bounds

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// One client holds at most half of the places. A place that is given back goes to the
// client that holds fewest, and among those of one client to who came first.
func TestPlacesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4)
		var got []string
		back := map[string]func(){}
		take := func(client, name string) {
			go func() {
				giveBack, err := p.Take(t.Context(), client)
				if err != nil {
					t.Error(err)
				}
				got = append(got, name)
				back[name] = giveBack
			}()
			synctest.Wait()
		}
		want := func(names ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(got, names) {
				t.Errorf("got %q, want %q", got, names)
			}
			got = nil
		}
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			take("a", name)
		}
		want("a1", "a2")
		take("b", "b1")
		take("c", "c1")
		want("b1", "c1")
		take("b", "b2")
		take("d", "d1")
		want()
		back["a1"]()
		want("d1") // it holds none
		back["a2"]()
		want("a3") // a and d hold fewer than b, and a came first
		back["b1"]()
		want("b2")
		for _, name := range []string{"a3", "c1", "d1", "b2"} {
			back[name]()
		}
		want("a4")
		back["a4"]()
		if p.taken != 0 || len(p.held)+len(p.waits) != 0 {
			t.Errorf("in the end %+v", p)
		}
	})
}

// Who does not wait, or waits until the context ends, gets no place and keeps none.
func TestNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1)
		giveBack, ok := p.Try("a")
		if _, again := p.Try("b"); !ok || again {
			t.Errorf("the only place: %t, %t", ok, again)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Take(ctx, "b"); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		giveBack()
		if giveBack, ok = p.Try("b"); !ok {
			t.Error("the place is not given back")
		}
		giveBack()
		if len(p.held)+len(p.waits) != 0 {
			t.Errorf("in the end %+v", p)
		}
	})
}

// A client is a user, or an address where nobody knows the user.
func TestClient(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "[::1]:1234"
	for name, want := range map[string]string{"ann": "user ann", user.Anonymous: "address ::1", "": "address ::1"} {
		if got := Client(r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name}))); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
	if got := Client(r); got != "address ::1" {
		t.Errorf("nobody: got %s", got)
	}
}
