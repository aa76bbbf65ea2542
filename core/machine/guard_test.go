package machine

import (
	"errors"
	"regexp"
	"testing"
)

// The site of a panic is the line that raised it, whether the code or the runtime
// did, and that of the last panic where one was raised while another was handled.
func TestPanicSite(t *testing.T) {
	var none *Machine
	for name, raise := range map[string]func(){
		"an error":       func() { panic(errors.New("e")) },
		"a nil pointer":  func() { none.panics++ },
		"an index":       func() { _ = make([]int, none.count())[1] },
		"a second panic": func() { defer func() { panic("second") }(); panic("first") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
				if site := PanicSite(); !regexp.MustCompile(`^guard_test\.go:\d+$`).MatchString(site) {
					t.Errorf("raised at %s", site)
				}
			}()
			raise()
		})
	}
}

func (m *Machine) count() int { return 0 }
