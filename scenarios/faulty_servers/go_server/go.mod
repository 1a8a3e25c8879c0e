module faultyserver

go 1.22
