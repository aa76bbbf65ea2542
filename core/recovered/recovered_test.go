package recovered

import (
	"errors"
	"os"
	"regexp"
	"testing"
)

// The site of a panic is the line that raised it, whether the code or the runtime
// did, and that of the last panic where one was raised while another was handled.
func TestSite(t *testing.T) {
	var none *Panic
	for name, raise := range map[string]func(){
		"an error":       func() { panic(errors.New("e")) },
		"a nil pointer":  func() { none.Site = "" },
		"an index":       func() { _ = make([]int, len(os.Args[:0]))[1] },
		"a second panic": func() { defer func() { panic("second") }(); panic("first") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				value := recover()
				if value == nil {
					t.Fatal("no panic")
				}
				if p := From("it", value); !regexp.MustCompile(`^recovered_test\.go:\d+$`).MatchString(p.Site) {
					t.Errorf("raised at %s", p.Site)
				}
			}()
			raise()
		})
	}
}

// What is recovered has the value's text of that moment.
func TestValueMayChange(t *testing.T) {
	value := map[string]int{"a": 1}
	p := From("it", value)
	value["a"] = 2
	if want := "it panicked: map[a:1] (unknown site)"; p.Error() != want {
		t.Errorf("%q, want %q", p, want)
	}
}
