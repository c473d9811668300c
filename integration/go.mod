module github.com/glycerine/gosimnet/integration

go 1.26.0

replace github.com/glycerine/gosimnet => ../

require (
	github.com/glycerine/gosimnet v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.62.0
)

require (
	github.com/glycerine/idem v0.20.7 // indirect
	github.com/glycerine/one_tree_rwmut v1.0.0 // indirect
	github.com/glycerine/rbtree v0.2.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
