package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// addOutput adds -o, which takes one of the forms and is the first where it is not
// given. A shell completes it. The note follows the forms in the help.
func addOutput(cmd *cobra.Command, output *string, note string, forms ...string) {
	last := len(forms) - 1
	usage := "output format: " + strings.Join(forms[:last], ", ") + " or " + forms[last] + note
	cmd.Flags().StringVarP(output, "output", "o", forms[0], usage)
	complete := cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // only without the flag
	}
}
