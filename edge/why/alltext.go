package why

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/terminal"
)

// String says for people which pods these are, "" where they are all.
func (s *Scope) String() string {
	text := ""
	if s.Workload != nil {
		text = " of " + s.Workload.Kind + " " + s.Workload.Namespace + "/" + s.Workload.Name
	} else if s.Namespace != "" {
		text = " of namespace " + s.Namespace
	}
	if s.Selector != nil && !s.Selector.Empty() {
		text += " with the labels " + s.Selector.String()
	}
	return text
}

// Text writes the list for people; wide leaves nothing out.
func (l *List) Text(out io.Writer, wide bool) error {
	var b strings.Builder
	stalledText(&b, l.Stalled)
	if l.Quota != nil {
		l.Quota.text(&b)
	}
	l.headText(&b)
	if l.Topology != "" {
		terminal.Fprintf(&b, "\nTopology: %s\n", l.Topology)
	}
	for i := range l.Causes {
		l.Causes[i].text(&b, wide)
	}
	if len(l.Causes) > mostExplained && slices.ContainsFunc(l.Causes[mostExplained:], func(c Cause) bool { return c.hasFixes() }) {
		terminal.Fprintf(&b, "\nWhat would help was looked for in the first %d causes; ask about a pod of another one by its name.\n", mostExplained)
	}
	if l.Cut != "" {
		terminal.Fprintf(&b, "\nCut: %s.\n", l.Cut)
	}
	for _, left := range l.LeftOut {
		terminal.Fprintf(&b, "\nLeft out: %s\n", left)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// headText says how many pods wait, and which were never made.
func (l *List) headText(b *strings.Builder) {
	if l.Pods == 0 {
		terminal.Fprintf(b, "No pod%s is pending.\n", l.about)
		for _, text := range l.Idle {
			terminal.Fprintf(b, "  %s\n", text)
		}
	} else {
		verb := "are"
		if l.Pods == 1 {
			verb = "is"
		}
		terminal.Fprintf(b, "%s%s %s pending, by cause, each tried in the scheduler's order\n", terminal.Count(l.Pods, "pod"), l.about, verb)
	}
	l.unmadeText(b)
}

// UnmadeText writes for people which pods were never made, and which made room for others.
func (l *List) UnmadeText(out io.Writer) error {
	var b strings.Builder
	l.unmadeText(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (l *List) unmadeText(b *strings.Builder) {
	for i := range l.Missing {
		m := &l.Missing[i]
		terminal.Fprintf(b, "\n%s of %s never made%s: %s\n", terminal.Count(m.Pods, "pod"), m.Workload, sinceText(m.Since), m.Message)
		holdersText(b, "  ", m.Holders)
	}
	l.preemptedText(b)
}

// text writes the cause.
func (c *Cause) text(b *strings.Builder, wide bool) {
	terminal.Fprintf(b, "\n%s, %s\n", terminal.Count(c.Pods, "pod"), c.Sentence)
	c.restText(b, wide)
}

// restText writes what follows the sentence.
func (c *Cause) restText(b *strings.Builder, wide bool) {
	terminal.Fprintf(b, "  %s\n", c.names())
	if of := c.ofText(); of != "" {
		terminal.Fprintf(b, "  %s\n", of)
	}
	c.Rollout.text(b, "  ")
	holdersText(b, "  ", c.Holders)
	for i := range c.Leaving[:min(shortNames, len(c.Leaving))] {
		terminal.Fprintf(b, "  %s\n", c.Leaving[i].text())
	}
	for i := range c.Held[:min(shortNames, len(c.Held))] {
		terminal.Fprintf(b, "  %s\n", c.Held[i].text())
	}
	shown := c.Fixes
	if !wide {
		shown = shown[:min(shortShared, len(shown))]
	}
	for i := range shown {
		f := &shown[i]
		terminal.Fprintf(b, "  %d. %s; %s\n", i+1, f.Summary, f.placesText(c.Pods))
		indent := "       "
		for _, line := range f.Commands {
			terminal.Fprintf(b, "%s%s\n", indent, line)
			switch { // the shell wants what is between at the margin
			case strings.HasSuffix(line, "<<'EOF'"):
				indent = ""
			case line == "EOF":
				indent = "       "
			}
		}
	}
	terminal.More(b, "  ", len(c.Fixes)-len(shown))
	if c.Cut != "" {
		terminal.Fprintf(b, "  cut: %s\n", c.Cut)
	}
}

// shortShared is how many fixes of a cause the short form shows.
const shortShared = 2

// placesText says how many pods the fix places, of a cause that has so many, and whom they evict.
func (f *Shared) placesText(pods int) string {
	text := fmt.Sprintf("places %d of %d", f.Places, f.Of)
	if f.Of < pods {
		text = fmt.Sprintf("places %d of the first %d", f.Places, f.Of)
	}
	if len(f.Then.Evicts) > 0 {
		text += " and evicts " + list(f.Then.Evicts, shortNames)
	}
	return text
}

// ofText says of which workloads the pods are, and since when they wait.
func (c *Cause) ofText() string {
	keys := slices.SortedFunc(maps.Keys(c.Workloads), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Workloads[b], c.Workloads[a]), cmp.Compare(a, b))
	})
	for i, key := range keys {
		if len(keys) > 1 || c.Workloads[key] < c.Pods {
			keys[i] = fmt.Sprintf("%s (%d)", key, c.Workloads[key])
		}
	}
	text := list(keys, shortNames)
	if text != "" {
		text = "of " + text
	}
	if c.Since != nil {
		text += sinceText(c.Since)
	}
	return strings.TrimPrefix(text, ", ")
}

// sinceText says since when, "" where that is not known.
func sinceText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ", since " + clock(*t)
}

// clock is the time as texts have it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// names names some of the pods and counts the others.
func (c *Cause) names() string {
	if c.Pods <= len(c.Examples) {
		return list(c.Examples, shortNames)
	}
	shown := c.Examples[:min(shortNames, len(c.Examples))]
	return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), c.Pods-len(shown))
}
