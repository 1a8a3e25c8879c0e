module subtle

go 1.23
