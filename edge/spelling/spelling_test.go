package spelling

import "testing"

// Each change, addition and omission counts once, in both directions.
func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"web", "web", 0}, {"", "web", 3}, {"web", "wet", 1}, {"web", "webs", 1}, {"node-1", "node1", 1},
		{"NodeResorceFit", "NodeResourcesFit", 2}, {"kitten", "sitting", 3},
	} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", test.a, test.b, got, test.want)
		}
		if got := Distance(test.b, test.a); got != test.want {
			t.Errorf("Distance(%q, %q) is %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
