// Nothing: see the replace directive in ../go.mod.
module google.golang.org/genproto

go 1.26.0
