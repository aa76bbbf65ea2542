package conform

import (
	"reflect"
	"strings"
	"testing"
)

// Both sides come to the same in every story of the project, except for what the
// story marks.
func TestStories(t *testing.T) {
	var out strings.Builder
	if err := playStories("../../scenarios", &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}

const firstOfGroup = `node a label:zone=z1
node b label:zone=z2
pod one bound=a label:app=web
pod two label:app=web near="zone app=web" selector:zone=z2
cycle
delete pod one
`

// A difference needs a mark at its step, and a mark needs a difference.
func TestMarks(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{ // want: of the only line; "" none
		{"marked", firstOfGroup + "differs two: R3\nexpect two in backoff\n", ""},
		{"marked behind an expectation", firstOfGroup + "expect two in backoff\ndiffers two: R3\n", ""},
		{"not marked at the end", firstOfGroup,
			"f.txt:6: delete pod one: pod default/two: Delete pod default/one requeues it in Berth, not in kube-scheduler, and it fits"},
		{"marked too late", firstOfGroup + "advance 1s\ndiffers two: R3\n",
			"f.txt:6: delete pod one: pod default/two: Delete pod default/one requeues it in Berth, not in kube-scheduler, and it fits"},
		{"stale", "node a\npod one\ncycle\ndiffers one: it is placed elsewhere\n",
			"f.txt:4: differs one: kube-scheduler does and says the same"},
		{"an expectation that is not met", "node a\npod one\nexpect one -> a\n", "f.txt:3: expect one -> a: it is active: "},
		{"no story", "\"\n", "f.txt:1: a quote is not closed"},
		{"a configuration that kube-scheduler does not read", "config\n  kind: x\n", "f.txt: kube-scheduler: configuration: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, said := compareStory("f.txt", tt.text)
			if got := strings.Join(said, "\n"); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Whatever is compared is counted.
func TestStoryCounts(t *testing.T) {
	counts, said := compareStory("f.txt", firstOfGroup+"differs two: R3\n")
	if want := (storyCounts{stories: 1, decisions: 1, requeues: 1, marked: 1}); !reflect.DeepEqual(counts, want) || len(said) > 0 {
		t.Errorf("got %+v, %v", counts, said)
	}
}

// Other decisions than kube-scheduler's do not go unseen.
func TestFollowerSees(t *testing.T) {
	// A host port of two pods is free in Berth when the last of them goes, in
	// kube-scheduler when the first does (docs/deviations.md).
	_, said := compareStory("f.txt", `node a
pod one bound=a port=80
pod two bound=a port=80
delete pod one
pod three port=80
cycle
`)
	if len(said) != 1 || !strings.HasPrefix(said[0], "f.txt:6: cycle: pod default/three: result: kube-scheduler Scheduled, Berth ") {
		t.Errorf("got %v", said)
	}
}

// A directory without stories is an error.
func TestNoStories(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "no/such/directory"} {
		if err := playStories(dir, &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), "--stories: ") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}
