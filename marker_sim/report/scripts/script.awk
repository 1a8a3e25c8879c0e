# The log, in order: begin ID OPERATION PLACE LIFE REQUEST NAME | end ID ANSWER | look ID PLACE WHEN | looked ID FILES TYPE
#   | started LIFE | kill LIFE | exited LIFE | fault begin or end | obstacle PLACE 1 or 0 | removed PLACE
function breach(id, text) {
    if (index(claims, " " id " ") && !((id, text) in told)) { told[id, text] = 1; print id ": " text }
}
function plain(text) { gsub("\001", "\n", text); gsub("\002", "\t", text); return text }
function short(text) { gsub("\n", "\\n", text); gsub("\r", "\\r", text); gsub("\t", "\\t", text); if (text == "") return "the empty name"; return length(text) > 90 ? substr(text, 1, 60) "... (" length(text) " bytes)" : text }
function data(text) { sub(/\.marker\.[A-Z]+$/, "", text); return text }
function forget(p,    k, s) {  # From now on a deletion may act there.
    for (k in owed) { split(k, s, SUBSEP); if (s[1] == p) delete owed[k] }
    for (k in made) { split(k, s, SUBSEP); if (s[1] == p) delete made[k] }
    for (k in taken) { split(k, s, SUBSEP); if (s[1] == p) delete taken[k] }
    for (k in open) if (place[k] == p) tainted[k] = 1
}
function ended(l,    id) {  # A server life is over, and so is what it may have been deleting.
    dead[l] = 1; living--; calm = $1
    for (id in hanging) if (life[id] == l) { deleting[place[id]]--; delete hanging[id] }
}
function told_of(k, l,    s) { return !(mixed[l] && mixed[owner[k]] && owner[k] != l) }
$2 == "started" { living++; mixed[$3] = living > 1; if (living > 1) { for (k in made) delete made[k]; for (l in alive) mixed[l] = 1 }; alive[$3] = 1; calm = $1 }
$2 == "kill" { ended($3); delete alive[$3]; for (k in owed) died[k] = 1 }
$2 == "exited" { ended($3); delete alive[$3]; breach("G6", "a server ended by itself") }
$2 == "fault" { faults += $3 == "begin" ? 1 : -1; calm = $1 }
$2 == "obstacle" {
    blocked[$3] = $4; blocks = 0; for (p in blocked) blocks += blocked[p]
    if ($4) for (id in open) if (!blocked[place[id]]) apart[id] = 1  # They wait in a healthy directory.
}
$2 == "removed" { forget($3); outside[$3] = 1; for (k in gone) { split(k, s, SUBSEP); if (s[1] == $3) delete gone[k] } }
$2 == "begin" {
    id = $3; op[id] = $4; p = place[id] = $5; life[id] = $6; request[id] = $7; name[id] = plain($8); since[id] = $1; line[id] = NR
    k = p SUBSEP name[id]
    apart[id] = blocks > 0 && !blocked[p]
    if ($4 ~ /^(create|copy|probe)$/) {
        asked[k] = 1; data_asked[p, data(name[id])] = 1; busy[k]++; open[id] = 1; newer[k] = NR; any[p] = NR; delete gone[k]
        if (deleting[p]) tainted[id] = 1
    } else if ($4 == "delete") {
        for (k in asked) { split(k, s, SUBSEP); if (s[1] == p && !busy[k]) leaves[id, s[2]] = 1 }
        forget(p); deleting[p]++
    } else if ($4 ~ /^hostile/) {
        odd[k] = 1; data_asked[p, data(name[id])] = 1  # It need not be taken, and may be.
    } else {
        for (k in owed) { split(k, s, SUBSEP); if (s[1] == p) due[id, s[2]] = owed[k] }
    }
}
$2 == "end" {
    id = $3; p = place[id]; k = p SUBSEP name[id]; l = life[id]; o = op[id]; delete open[id]
    ok = $4 ~ /^(true|false|list)$/; unknown = $4 ~ /^(no answer|HTTP 5)/; unanswered = $4 ~ /^no answer/
    lives = !dead[l] && faults == 0
    if (unanswered && lives && ($4 ~ /ended$/ ? calm < since[id] : $1 - (calm > since[id] ? calm : since[id]) >= bound))
        breach("G6", o " " short(name[id]) " was not answered (" $4 "), and the server lives")
    if (apart[id] && !dead[l] && unknown) breach("G7", o " " short(name[id]) " in a healthy directory: " $4)
    if (o ~ /^(create|copy|probe)$/) {
        if (!unknown && $4 != "hung-up") busy[k]--
        if (o == "probe" && !ok && lives && calm < since[id]) breach("G6", "a create when all is well again: " $4)
        if (ok && o != "copy" && !tainted[id] && !deleting[p]) {
            if (!(k in owed)) { when[k] = NR; delete seen[k]; delete died[k] }
            owed[k] = $4; owner[k] = l
            same = request[id] != "" && request[id] == made_by[k] && made_in[k] == l
            if (living < 2 && !outside[p] && (k in made) && (same ? $4 == "false" : $4 == "true"))
                breach("G5", short(name[id]) (same ? " was created, and its resend was answered false" : " was answered true twice"))
            if ($4 == "true" && living < 2) { made[k] = 1; made_by[k] = request[id]; made_in[k] = l }
        }
    } else if (o == "delete") {
        if (unknown || $4 == "hung-up") hanging[id] = 1
        else deleting[p]--
        if (ok) {
            deleted[p] = NR
            for (k in leaves) { split(k, s, SUBSEP); if (s[1] == id && newer[p, s[2]] < line[id]) gone[p, s[2]] = 1 }
        }
    } else if (o ~ /^hostile/) {
        if (o == "hostile" && ok && !deleting[p]) taken[k] = $4
        if ($4 !~ /^(HTTP 4|refused)/) breach("G12", "a hostile name was answered " $4)
    } else if ($4 == "list") {
        split("", present)
        while ((getline text < (dir "/listed-" id)) > 0) {
            text = plain(text)
            present[o == "list" ? text : data(text)] = 1
            known = o == "list" ? (p, text) in asked || (p, text) in odd : (p, data(text)) in data_asked
            if (!known) breach("G4", o " has " short(text) ", which nobody asked for")
            if ((p, text) in gone && !outside[p] && !mixed[l]) breach("G10", short(text) " is listed after the deletion")
        }
        for (k in due) {
            split(k, s, SUBSEP); n = s[2]
            if (s[1] != id || !((p, n) in owed) || outside[p] || !told_of(p SUBSEP n, l)) continue
            log_file = n ~ /\.marker\.APPEND$/
            if ((o == "list-data" && log_file) || (o == "list-log" && !log_file)) continue
            if (!((o == "list" ? n : data(n)) in present)) breach("G11", short(n) " was answered, and " o " lacks it")
        }
    } else if (o ~ /^list/) {
        if (!dead[l] && faults == 0 && calm < since[id] && !outside[p]) breach("G11", o ": " $4)
    } else if (o == "exists" && $4 == "false") {
        for (k in due) { split(k, s, SUBSEP); if (s[1] == id && (p, s[2]) in owed && !outside[p] && told_of(p SUBSEP s[2], l)) breach("G11", "the directory of " short(s[2]) " is said not to exist") }
    } else if (o == "exists" && $4 == "true") {
        if (deleted[p] && any[p] < deleted[p] && any[p] && !outside[p] && !mixed[l]) ghost[p] = 1
    }
}
$2 == "look" {
    looked_at[$3] = $4; why[$3] = $5
    for (k in owed) { split(k, s, SUBSEP); if (s[1] == $4) expected[$3, s[2]] = when[k] }
    for (k in gone) { split(k, s, SUBSEP); if (s[1] == $4) absent[$3, s[2]] = 1 }
}
$2 == "looked" {
    id = $3; p = looked_at[id]; split("", present)
    while ((getline text < (dir "/look-" id)) > 0) {
        if (text == "") continue  # A line without a name is none.
        present[text] = 1; seen[p, text] = 1
        if (!((p, text) in asked) && !((p, text) in odd)) breach("G4", short(text) " is stored, and nobody asked for it")
        if ((id, text) in absent && (p, text) in gone && !outside[p]) breach("G10", short(text) " is stored after the deletion")
    }
    close(dir "/look-" id)
    for (k in expected) {
        split(k, s, SUBSEP); n = s[2]; k2 = p SUBSEP n
        if (s[1] == id && (k2 in owed) && when[k2] == expected[k] && !(n in present)) {
            g = died[k2] || was[k2] ? "G3" : why[id] == "answer" ? (owed[k2] == "true" ? "G1" : "G2") : "G4"
            breach(g, short(n) " was answered " owed[k2] ", and is not stored " (g ~ /[12]/ ? "at that moment" : was[k2] ? "any more" : died[k2] ? "after a kill" : "in the end"))
        }
        if (s[1] == id) delete expected[k]
    }
    for (k in taken) {
        split(k, s, SUBSEP)
        if (s[1] == p && why[id] == "end" && !outside[p] && !(s[2] in present)) breach("G4", short(s[2]) " was answered " taken[k] ", and is not stored in the end")
    }
    for (n in present) was[p, n] = (p, n) in owed
    if ($4 > threads) breach("G8", $4 " marker files, and " threads " is the most")
    if ($4 > 0 && $5 != "TIMELINE_SERVER_BASED" && $5 != "-" && !deleting[p] && !outside[p]) breach("G9", "there are marker files, and the type file is " $5)
    if ($4 == 0 && ghost[p]) breach("G10", "a directory without any files is said to exist")
}
