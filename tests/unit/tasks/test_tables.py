from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from engram import InputError
from engram.tasks.occurrences import Occurrences
from engram.tasks.tables import read_occurrences

GBIF = (
    "gbifID\tspecies\tscientificName\tdecimalLatitude\tdecimalLongitude\t"
    "coordinateUncertaintyInMeters\tyear\toccurrenceStatus\tindividualCount\tlocality\n"
    '1\tPoecile atricapillus\tPoecile atricapillus (L.)\t45.5\t-73.6\t30\t2019\tPRESENT\t2\t5" N\n'
    "2\tBombycilla cedrorum\tBombycilla cedrorum Vieillot\t44.0\t-80.0\t\t2021\tPRESENT\t\t\n"
    "3\tPoecile atricapillus\tPoecile atricapillus (L., 1766)\t46.5\t-70.5\t5000\t\tABSENT\t0\t\n"
    "4\tPoecile atricapillus\tPoecile atricapillus (L., 1766)\t\t\t\t2018\tPRESENT\t1\t\n"
)
INATURALIST = (
    "id,observed_on,scientific_name,common_name,latitude,longitude,positional_accuracy,"
    "public_positional_accuracy,place\n"
    '1,2021-06-01,Strymon melinus,Gray Hairstreak,35.0,-90.5,10,28000,"Memphis, TN"\n'
    "2,2016-07-09,Papilio cresphontes,Giant Swallowtail,33.1,-97.0,4,4,\n"
)
EBIRD = (
    "COMMON NAME\tSCIENTIFIC NAME\tOBSERVATION COUNT\tLATITUDE\tLONGITUDE\tOBSERVATION DATE\n"
    "Cedar Waxwing\tBombycilla cedrorum\tX\t44.1\t-79.9\t2014-05-02\n"
    "Cedar Waxwing\tBombycilla cedrorum\t12\t44.2\t-79.8\t2015-05-02\n"
)


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def message(path: Path, **options: dict[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        read_occurrences(path, **options)
    return str(caught.value)


def test_gbif_names(tmp_path: Path) -> None:
    table = read_occurrences(write(tmp_path / "gbif.csv.gz", GBIF))
    assert table.latitude.tolist() == [45.5, 44.0, 46.5]  # no coordinates, no record
    assert table.species[0] == "Poecile atricapillus"
    np.testing.assert_array_equal(table.uncertainty, [30, np.nan, 5000])
    np.testing.assert_array_equal(table.year, [2019, 2021, np.nan])
    assert table.count.tolist() == [2, 1, 0]
    assert table.present.tolist() == [True, True, False]


def test_inaturalist_names_and_blurred_coordinates(tmp_path: Path) -> None:
    table = read_occurrences(write(tmp_path / "inat.csv", "\ufeff" + INATURALIST))
    assert table.year.tolist() == [2021, 2016]
    assert table.uncertainty.tolist() == [28000, 4]  # of the coordinates that were published
    assert table.common_name[0] == "Gray Hairstreak"
    assert len(table.of_species("giant swallowtail")) == 1


def test_ebird_names_and_uncounted_birds(tmp_path: Path) -> None:
    table = read_occurrences(write(tmp_path / "ebd.txt", EBIRD))
    assert table.count.tolist() == [1, 12]
    assert table.present.all()
    assert table.year.tolist() == [2014, 2015]


def test_other_names_are_given_by_the_caller(tmp_path: Path) -> None:
    path = write(tmp_path / "own.csv", "Art;Y;X\nLynx lynx;60;10\n")
    assert "recognised as latitude; it has Art, Y, X" in message(path)
    assert "--column latitude=NAME" in message(path)
    table = read_occurrences(path, {"latitude": "Y", "longitude": "X", "species": "Art"})
    assert table.latitude.tolist() == [60]
    assert table.most_common() == ["Lynx lynx"]
    assert "no column 'Z'" in message(path, columns={"latitude": "Z"})
    assert "unknown field 'lattitude'" in message(path, columns={"lattitude": "Y"})


def test_several_tables_are_pooled_in_the_order_of_their_names(tmp_path: Path) -> None:
    paths = [write(tmp_path / "b.txt", EBIRD), write(tmp_path / "a.csv", INATURALIST)]
    table = read_occurrences(paths)
    assert len(table) == 4
    assert table.origin == "a.csv + b.txt"
    assert "uncertainty" not in table.known
    with pytest.raises(InputError, match="given twice"):
        read_occurrences([paths[0], paths[0]])


def test_parquet_reads_like_csv(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {
        "species": ["Lynx lynx", None, "Lynx rufus"],
        "decimalLatitude": [60.0, 61.0, None],
        "decimalLongitude": [10.0, 11.0, 12.0],
        "year": [2001, None, 2003],
    }
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path)
    table = read_occurrences(path)
    assert table.species.tolist() == ["Lynx lynx", ""]
    np.testing.assert_array_equal(table.year, [2001, np.nan])
    path.write_bytes(path.read_bytes()[:50])
    assert "cannot read" in message(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("lat,lon\n1,2\n3,east\n", "row 3, column 'lon': cannot read 'east' as longitude"),
        ("lat,lon\n1,2\n\n3,inf\n", "row 4, column 'lon': cannot read 'inf'"),
        ("lat,lon\n1,2\n500000,3\n600000,3\n", "row 3, column 'lat': latitude 500000 is outside"),
        ("lat,lon\n1,2\n1,-200\n", "are latitude and longitude exchanged"),
        ("lat,lon,count\n1,2,-4\n", "count -4 is below 0"),
        ("lat,lon,present\n1,2,maybe\n", "cannot read 'maybe' as present"),
        ("lat,lon,year\n1,2,MMXX\n", "cannot read 'MMXX' as year"),
        ("lat,lon\n1,2\n1,2,3\n", "row 3: 3 fields where the header has 2"),
        ("lat,lon\n", "no records"),
        ("lat,lon\nNA,\n", "none of its 1 records has coordinates"),
        ("", "is empty"),
    ],
)
def test_faults_are_named_with_their_row(tmp_path: Path, text: str, fault: str) -> None:
    assert fault in message(write(tmp_path / "table.csv", text))


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    assert "no data file" in message(tmp_path / "none.csv")
    assert "is a folder" in message(tmp_path)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(GBIF.encode())[:-20])
    assert "cannot read" in message(cut)
    archive = tmp_path / "download.csv"
    archive.write_bytes(b"PK\x03\x04rest")
    assert "unpack it" in message(archive)
    binary = tmp_path / "latin.csv"
    binary.write_bytes("lat,lon,place\n1,2,Québec\n".encode("latin-1"))
    assert "not text in UTF-8" in message(binary)
    parquet = tmp_path / "text.parquet"
    parquet.write_text("no parquet")
    assert "Parquet" in message(parquet)


@pytest.fixture
def gbif(tmp_path: Path) -> Occurrences:
    return read_occurrences(write(tmp_path / "gbif.csv", GBIF))


def test_filters_drop_what_does_not_say(gbif: Occurrences) -> None:
    assert len(gbif.filtered(years=(2020, None))) == 1
    assert len(gbif.filtered(years=(None, 2021))) == 2  # the third has no year
    assert len(gbif.filtered(max_uncertainty=100)) == 1
    assert len(gbif.filtered(box=(45, 50, -75, -60))) == 2
    with pytest.raises(InputError, match="none of the 3 records"):
        gbif.filtered(years=(1900, 1901))
    with pytest.raises(InputError, match="first is after the last"):
        gbif.filtered(years=(2020, 2000))
    with pytest.raises(InputError, match="south < north"):
        gbif.filtered(box=(50, 45, -75, -60))


def test_filters_need_their_column(tmp_path: Path) -> None:
    table = read_occurrences(write(tmp_path / "bare.csv", "lat,lon\n1,2\n"))
    with pytest.raises(InputError, match="--column year=NAME"):
        table.filtered(years=(2000, 2001))
    with pytest.raises(InputError, match="--column uncertainty=NAME"):
        table.filtered(max_uncertainty=10)
    with pytest.raises(InputError, match="no column of species"):
        table.of_species("Lynx lynx")


def test_species_by_name_genus_and_prefix(gbif: Occurrences) -> None:
    assert len(gbif.of_species("poecile ATRICAPILLUS")) == 2
    assert len(gbif.of_species("Poecile")) == 2
    assert len(gbif.of_species(["Poecile", "Bombycilla cedrorum"])) == 3
    with pytest.raises(InputError, match="did you mean Bombycilla cedrorum") as caught:
        gbif.of_species("Bombicilla cedrorum")
    assert "most records: Poecile atricapillus, Bombycilla cedrorum" in str(caught.value)
    for nothing in ("", "Poecil"):
        with pytest.raises(InputError, match="no record of species"):
            gbif.of_species(nothing)
