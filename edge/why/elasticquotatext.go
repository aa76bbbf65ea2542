package why

import (
	"fmt"
	"strings"

	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// limitText says which limit is exceeded, and what is used of it. The queue q is called it.
func limitText(e *quota.Excess, q *quota.Queue) string {
	whose, of := "all ElasticQuotas together use", "%s of %s guaranteed"
	if e.Queue != nil {
		whose, of = "ElasticQuota "+e.Queue.Quota.Key(), "%s of at most %s"
		if e.Queue == q {
			whose = "it"
		}
		if e.Resource == "" {
			return whose + " cannot be read"
		}
		whose += " uses"
	}
	text := fmt.Sprintf(whose+" "+of, amountText(e.Resource, e.Used), amountText(e.Resource, e.Limit))
	if e.Unlisted {
		text += ", as no list names it"
	}
	if e.Nominated > 0 {
		text += fmt.Sprintf(", and %s are kept for nominated pods", amountText(e.Resource, e.Nominated))
	}
	return text
}

// quotaDetail says which limit of a quota the pod would exceed.
func quotaDetail(f *facts, b *Blocker) string {
	rules := f.cluster.Machine.Profile(f.pod.SchedulerName).Quotas
	if rules == nil {
		return b.Plugin + ": " + strings.Join(b.Reasons, ", ")
	}
	e := quota.Of(f.cluster.Machine.Table()).Exceeded(&quota.Ask{Pod: f.pod, Nominated: nominatedPods(f.cluster.Machine), UnlistedZero: rules.UnlistedZero})
	switch {
	case e == nil: // it was exceeded under other nominations
		return b.Plugin + ": " + strings.Join(b.Reasons, ", ")
	case e.Resource == "":
		return limitText(e, nil)
	}
	return fmt.Sprintf("it requests %s %s; %s", amountText(e.Resource, f.pod.Demand.Usage.Of(e.Resource)), e.Resource, limitText(e, nil))
}

// text writes how it stands with the ElasticQuota.
func (q *Quota) text(b *strings.Builder) {
	terminal.Fprintf(b, "ElasticQuota %s%s\n", q.Quota, q.treeText())
	for _, fault := range q.Faults {
		terminal.Fprintf(b, "  wrong: %s\n", fault)
	}
	for i := range q.Resources {
		q.Resources[i].write(b)
	}
	if q.Unwritten && len(q.Resources) > 0 {
		b.WriteString("  Its status has no amounts: no scheduler that counts it has written them.\n")
	}
	b.WriteByte('\n')
}

// treeText says of which other the ElasticQuota is a part, and which are parts of it.
func (q *Quota) treeText() (text string) {
	if q.Parent != "" {
		text += ", a part of " + q.Parent
	}
	if len(q.Parts) > 0 {
		text += ", with the parts " + list(q.Parts, mostExamples)
	}
	return text
}

// write writes how it stands with the resource.
func (r *QuotaResource) write(b *strings.Builder) {
	terminal.Fprintf(b, "  %s: %s used", r.Name, r.Used)
	if r.Min != "" {
		terminal.Fprintf(b, ", min %s", r.Min)
	}
	if r.Max != "" {
		terminal.Fprintf(b, ", max %s", r.Max)
	}
	b.WriteByte('\n')
	switch {
	case r.Lends != "":
		terminal.Fprintf(b, "    it leaves %s of its min unused%s\n", r.Lends, r.lentText())
	case r.Borrows != "" && len(r.Lenders) > 0:
		terminal.Fprintf(b, "    it uses %s above its min, borrowed from %s\n", r.Borrows, sharesText(r.Lenders, "leaves %s unused"))
	case r.Borrows != "":
		terminal.Fprintf(b, "    it uses %s above its min, and no other leaves any unused\n", r.Borrows)
	}
	other := ""
	if r.Reclaims != "" {
		terminal.Fprintf(b, "    a pod that requests at most %s gets back what it lacks\n", r.Reclaims)
		other = "other "
	}
	switch r.Free {
	case "":
	case "0":
		terminal.Fprintf(b, "    no %spod is let through now: %s\n", other, r.Limit)
	default:
		terminal.Fprintf(b, "    a pod that requests at most %s is let through as it is: %s\n", r.Free, r.Limit)
	}
	if r.Status != "" {
		terminal.Fprintf(b, "    its status says %s: the scheduler has yet to write it, or something else writes it, too\n", r.Status)
	}
}

// lentText says how much of what is unused others use.
func (r *QuotaResource) lentText() string {
	if len(r.Borrowers) == 0 {
		return ""
	}
	lent := "all of it"
	switch {
	case r.LentAtLeast != r.LentAtMost:
		lent = fmt.Sprintf("%s to %s of it (others lend, too)", r.LentAtLeast, r.LentAtMost)
	case r.LentAtMost != r.Lends:
		lent = r.LentAtMost + " of it"
	}
	return fmt.Sprintf(", and lends %s to %s", lent, sharesText(r.Borrowers, "%s above its min"))
}

// sharesText names the ElasticQuotas with their shares, each as the format says.
func sharesText(shares []QuotaShare, format string) string {
	texts := make([]string, len(shares))
	for i, s := range shares {
		texts[i] = s.Quota + " (" + fmt.Sprintf(format, s.Amount) + ")"
	}
	return list(texts, shortNames)
}
